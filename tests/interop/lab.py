# SPDX-License-Identifier: Apache-2.0
"""What the suites of this folder share: a private server, a connection that looks at it, and
programs that are driven by lines (RELEASES.md). All end with the suite, however that ends."""

import atexit
import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("BUILD", "build")
SOON = 20  # how long to wait, in s, for something that will come, unless something is broken
NOW = time.monotonic

_libc = ctypes.CDLL(None)
_started = []


def _end_all():
    for process in _started:
        if process.poll() is None:
            process.kill()


atexit.register(_end_all)
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def _die_with_parent():
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def start(words, **options):
    process = subprocess.Popen(words, preexec_fn=_die_with_parent, **options)
    _started.append(process)
    return process


def until(condition, what, seconds=SOON):
    """Waits until condition() is true, and returns what it returned; raises Failed otherwise."""
    end = NOW() + seconds
    while True:
        value = condition()
        if value:
            return value
        if NOW() > end:
            raise Failed("this never came: " + what)
        time.sleep(0.005)


def kept_releases():
    """The names of the folders of this one that keep a release."""
    here = os.path.dirname(os.path.abspath(__file__))
    return sorted(name for name in os.listdir(here)
                  if os.path.exists(os.path.join(here, name, "source.tar.gz")))


def fails(release):
    """The checks of peer.py that this kept release is known to fail: lines "peer CHECK" of its file
    "fails". Lines that begin otherwise say why."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), release, "fails")
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as file:
        return {line.split()[1] for line in file if line.startswith("peer ")}


class Failed(Exception):
    """A check that failed, in words."""


class Refused(Exception):
    """The server's error."""


class Stream:
    """Bytes from a descriptor, with a time limit."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.kept = b""

    def comes(self, seconds):
        return bool(self.kept) or bool(select.select([self.descriptor], [], [], seconds)[0])

    def _more(self):
        some = os.read(self.descriptor, 1 << 16)
        if not some:
            raise Failed("the other side has ended")
        self.kept += some

    def take(self, size):
        while len(self.kept) < size:
            self._more()
        taken, self.kept = self.kept[:size], self.kept[size:]
        return taken

    def line(self):
        while b"\n" not in self.kept:
            self._more()
        return self.take(self.kept.index(b"\n") + 1)


class Redis:
    """A connection: RESP2, blocking."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = Stream(self.socket.fileno())

    def send(self, *words):
        out = b"*%d\r\n" % len(words)
        for word in words:
            word = str(word).encode()
            out += b"$%d\r\n%s\r\n" % (len(word), word)
        self.socket.sendall(out)

    def read(self):
        line = self.stream.line()
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise Refused(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.stream.take(size + 2)[:-2].decode()
        if kind == b"*":
            return None if int(rest) < 0 else [self.read() for _ in range(int(rest))]
        raise Refused("not RESP2: %r" % line)

    def call(self, *words):
        self.send(*words)
        return self.read()

    def message(self, seconds=SOON):
        """The next message of a subscribed connection, or None."""
        return self.read() if self.stream.comes(seconds) else None


class Server:
    """A redis-server on a free port, which keeps nothing unless its options say so."""

    def __init__(self, *options):
        self.folder = tempfile.TemporaryDirectory()
        self.options = options or ("--appendonly", "no")
        for _ in range(10):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
            if self._start():
                return
        sys.exit("not ok compat: no redis-server")

    def _start(self):
        self.process = start(
            [os.path.abspath(BUILD + "/redis-server"), "--port", str(self.port), "--bind", "127.0.0.1",
             "--save", "", "--dir", self.folder.name, *self.options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return self._answers()

    def restart(self):
        """As after a crash."""
        self.process.kill()
        self.process.wait()
        until(self._start, "the server is back")

    def _answers(self):
        while self.process.poll() is None:
            try:
                Redis(self.port).call("PING")
                return True
            except (OSError, Refused, Failed):
                time.sleep(0.02)
        return False


def tell(process, *words):
    """Sends it a line. Its stdin has no buffer, or closing it would raise the error again."""
    line = " ".join(map(str, words))
    try:
        process.stdin.write(line.encode() + b"\n")
    except BrokenPipeError:
        raise Failed("the program has ended before it was told: " + line) from None


class Program:
    """A client under test: see RELEASES.md for its lines."""

    def __init__(self, words, port, *arguments):
        self.process = start([*words, "127.0.0.1", str(port), *map(str, arguments)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.stream = Stream(self.process.stdout.fileno())
        self.expect("ready")

    def say(self, *words):
        tell(self.process, *words)

    def silent(self, seconds=0):
        """It says nothing for so long."""
        return not self.stream.comes(seconds)

    def hear(self, seconds=SOON):
        if self.silent(seconds):
            raise Failed("the program does not answer")
        return self.stream.line().decode().split()

    def expect(self, *words, seconds=SOON):
        """Its next line is this one; returns what comes behind these words."""
        line = self.hear(seconds)
        if line[:len(words)] != list(words):
            raise Failed("it answers %s, not %s" % (" ".join(line), " ".join(words)))
        return line[len(words):]

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
