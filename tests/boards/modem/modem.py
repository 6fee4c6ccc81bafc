# SPDX-License-Identifier: Apache-2.0
"""A modem with AT commands, simulated: modem.py [--family simcom] [--baud N] [--line FD] PORT

It opens real TCP connections, of any host and port that it is told to open only to PORT of this
machine. The line is the file descriptor FD, or a terminal of its own, whose name is the first line
of the output. Each line of the standard input makes it do something wrong, and is answered by a
line, "done":

    echo            echo commands (ATE0 ends that)
    no-prompt       take the next command to send, and say nothing
    no-confirm      take the next data, send it, and say nothing
    deaf            say nothing to any command, until it is restarted
    restart         start anew, as after a loss of power: no connection, and it says so
    refuse-send     say ERROR to the next command to send
    full            say that there is no room for the next data
    lose N          lose a byte to the device when N more have gone
    add N           the same, but double it
    lose-in N       lose a byte from the device when N more have come
    unasked         say something of the network in the middle of each answer
    close-inside    the peer's close is told of in the middle of the next send
    quiet           do not say that bytes have arrived
    late            answer the next command 2 s later, after others have been asked
    slow-open       take 60 s to open
    well            no more of all that
    state           what it does: "idle", "open", or "inside N", N being the bytes that it waits for

It ends with its line, or, with a terminal of its own, with its input.
"""
import argparse
import os
import pty
import select
import socket
import sys
import termios
import time
import tty

MOST = 1460  # bytes in one send
BUFFERED = 8192  # that a server does not take; then there is no room

options = argparse.ArgumentParser()
options.add_argument("--family", choices=["quectel", "simcom"], default="quectel")
options.add_argument("--baud", type=int, default=0)
options.add_argument("--line", type=int, default=-1)
options.add_argument("port", type=int)
given = options.parse_args()
simcom = given.family == "simcom"


def open_line():
    if given.line >= 0:
        return given.line
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    print(os.ttyname(theirs), flush=True)
    return ours


class Way:
    """One way of the line, which takes its time."""

    def __init__(self):
        self.free_at = 0.0

    def room(self):
        return given.baud == 0 or time.monotonic() >= self.free_at

    def moved(self, count):
        if given.baud:
            self.free_at = max(self.free_at, time.monotonic()) + count * 10 / given.baud


class Modem:
    def __init__(self, line):
        self.line = line
        os.set_blocking(line, False)
        self.into, self.out = Way(), Way()
        self.wanted = {}
        self.has_input = True
        self.to_device = bytearray()
        self.socket = None
        self.start()

    def start(self):
        self.hang_up()
        self.echo = True
        self.text = bytearray()
        self.inside = 0  # bytes of data that are waited for
        self.data = bytearray()
        self.size = 0
        self.later = []  # what is said at a time
        self.arrived = bytearray()
        self.to_server = bytearray()
        self.told = self.ended = self.told_end = False
        self.is_open = self.opening = False

    def hang_up(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    # What is said

    def say(self, data):
        self.to_device += data

    def reply(self, *lines):
        for at, text in enumerate(lines):
            if "unasked" in self.wanted and (at or len(lines) == 1):
                self.say(b"\r\n+CREG: 1\r\n")
            self.say(b"\r\n" + text + b"\r\n")

    def tell_unasked(self):
        arrived = b"+CIPRXGET: 1,0" if simcom else b'+QIURC: "recv",0'
        if self.arrived and not self.told:
            self.told = True
            if "quiet" not in self.wanted:
                self.reply(arrived)
        if self.ended and not self.told_end and not self.inside and "close-inside" not in self.wanted:
            self.tell_end()

    # What the device asks for

    def take(self, byte):
        if self.inside:
            self.data.append(byte)
            self.inside -= 1
            if "close-inside" in self.wanted and self.ended and not self.told_end:
                del self.wanted["close-inside"]
                self.tell_end()
            if not self.inside:
                self.send()
        elif byte == 13:
            text = bytes(self.text)
            self.text.clear()
            if self.echo:
                self.say(text + b"\r")
            at = text.find(b"AT")
            if at >= 0:
                self.obey(text[at:].decode("latin-1"))
            elif text.strip(b"\x1b\n"):
                self.reply(b"ERROR")
        elif byte != 10:
            self.text.append(byte)

    def tell_end(self):
        self.told_end = True
        self.reply(b"+IPCLOSE: 0,1" if simcom else b'+QIURC: "closed",0')

    def once(self, what):
        return self.wanted.pop(what, None)

    def obey(self, text):
        if "deaf" in self.wanted:
            return
        if self.once("late"):
            self.later.append((time.monotonic() + 2, lambda: self.answer(text)))
            return
        try:
            self.answer(text)
        except (IndexError, ValueError):
            print(f"# not understood: {text!r}", file=sys.stderr)
            self.reply(b"ERROR")

    def answer(self, text):
        name, _, rest = text.partition("=")
        words = rest.split(",")
        if name == "ATE0":
            self.echo = False
            self.reply(b"OK")
        elif name in ("AT+QIOPEN", "AT+CIPOPEN"):
            self.open(words)
        elif name in ("AT+QISEND", "AT+CIPSEND"):
            self.prompt(int(words[1]))
        elif name == "AT+QIRD" or text.startswith("AT+CIPRXGET=2"):
            self.hand_over(int(words[-1]))
        elif name in ("AT+QICLOSE", "AT+CIPCLOSE"):
            self.close()
        elif name in ("AT+QIACT", "AT+NETOPEN") and self.is_open:
            self.reply(b"ERROR")
        else:
            self.reply(b"OK")

    def open(self, words):
        if self.is_open or self.opening:
            self.reply(b"+CME ERROR: 563")
            return
        self.reply(b"OK")
        self.hang_up()
        self.arrived.clear()
        self.to_server.clear()
        self.told = self.ended = self.told_end = False
        self.opening = True
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.error = self.socket.connect_ex(("127.0.0.1", given.port))
        self.slow = time.monotonic() + 60 if self.once("slow-open") else 0

    def opened(self, error):
        self.opening = False
        self.is_open = error == 0
        result = b"0" if error == 0 else b"566"
        self.reply((b"+CIPOPEN: 0," if simcom else b"+QIOPEN: 0,") + (b"10" if simcom and error else result))
        if error:
            self.hang_up()
            self.is_open = not simcom  # a connection that failed has to be closed, too

    def prompt(self, size):
        gone = not self.socket and "close-inside" not in self.wanted
        if self.once("refuse-send") or not self.is_open or gone:
            self.reply(b"ERROR")
        elif size > MOST:
            self.reply(b"+CME ERROR: 552")
        else:
            self.inside = self.size = size
            self.data.clear()
            if not self.once("no-prompt"):
                self.say(b"\r\n> ")

    def send(self):
        room = len(self.to_server) < BUFFERED and not self.once("full")
        if room and self.socket:
            self.to_server += self.data
        if self.once("no-confirm"):
            return
        if not self.socket:
            self.reply(b"ERROR")
        elif simcom:
            self.reply(b"OK", b"+CIPSEND: 0,%d,%d" % (self.size, self.size if room else 0))
        else:
            self.reply(b"SEND OK" if room else b"SEND FAIL")

    def hand_over(self, most):
        if not self.is_open:
            self.reply(b"ERROR")
            return
        data = bytes(self.arrived[:most])
        del self.arrived[:most]
        if not self.arrived:
            self.told = False
        head = b"+CIPRXGET: 2,0,%d,%d" % (len(data), len(self.arrived)) if simcom else b"+QIRD: %d" % len(data)
        self.reply(head)
        if data:
            self.say(data + b"\r\n")
        self.reply(b"OK")

    def close(self):
        was = self.is_open or self.opening
        self.hang_up()
        self.is_open = self.opening = False
        self.arrived.clear()
        if not simcom:
            self.reply(b"OK")
        elif was:
            self.reply(b"OK", b"+CIPCLOSE: 0,0")
        else:
            self.reply(b"+CIPCLOSE: 0,4", b"ERROR")

    # What is to be moved

    def from_server(self):
        try:
            data = self.socket.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.arrived += data
        if not data:
            self.ended = True
            self.hang_up()

    def to_the_server(self):
        try:
            del self.to_server[: self.socket.send(self.to_server)]
        except BlockingIOError:
            pass
        except OSError:
            self.ended = True
            self.hang_up()

    def from_device(self):
        data = os.read(self.line, 16 if given.baud else 4096)
        if not data:
            raise EOFError
        self.into.moved(len(data))
        for byte in data:
            if not self.falls("lose-in"):
                self.take(byte)

    def falls(self, what):
        """Whether it is this byte's turn."""
        if what not in self.wanted:
            return False
        self.wanted[what] -= 1
        if self.wanted[what] >= 0:
            return False
        del self.wanted[what]
        return True

    def to_the_device(self):
        byte = bytes(self.to_device[:1])
        if "lose" not in self.wanted and "add" not in self.wanted:
            byte = bytes(self.to_device[: 16 if given.baud else 4096])
        if self.falls("lose"):
            del self.to_device[:1]
            return
        if self.falls("add"):
            self.to_device[:0] = byte
        written = os.write(self.line, byte)
        self.out.moved(written)
        del self.to_device[:written]

    def control(self, line):
        words = line.split()
        if words == ["state"]:
            return "inside %d" % self.inside if self.inside else "open" if self.is_open and self.socket else "idle"
        if words == ["echo"]:
            self.echo = True
        elif words == ["restart"]:
            self.restart()
        elif words == ["well"]:
            self.wanted.clear()
        else:
            self.wanted[words[0]] = int(words[1]) if len(words) > 1 else True
        return "done"

    def restart(self):
        self.to_device.clear()
        self.wanted.clear()
        self.start()
        self.reply(b"*ATREADY: 1" if simcom else b"RDY")

    def finish_opening(self, ready):
        if self.slow and time.monotonic() < self.slow:
            return
        if self.error not in (0, 115) or self.socket in ready:
            error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            self.opened(error or (self.error if self.error != 115 else 0))
        elif self.error == 0:
            self.opened(0)

    def turn(self):
        reading, writing = [sys.stdin] if self.has_input else [], []
        if self.into.room():
            reading.append(self.line)
        if self.to_device and self.out.room():
            writing.append(self.line)
        if self.opening:
            writing.append(self.socket)
        elif self.socket:
            reading += [self.socket] if len(self.arrived) < BUFFERED else []
            writing += [self.socket] if self.to_server else []
        pause = 0.002 if given.baud or self.later else 1
        can_read, can_write, _ = select.select(reading, writing, [], pause)
        if sys.stdin in can_read:
            line = sys.stdin.readline()
            if line:
                print(self.control(line), flush=True)
            elif given.line < 0:
                raise EOFError
            self.has_input = bool(line)
        if self.line in can_read:
            self.from_device()
        if self.opening:
            self.finish_opening(can_write)
        elif self.socket and self.socket in can_read:
            self.from_server()
        if self.socket and self.socket in can_write and self.to_server:
            self.to_the_server()
        for item in [item for item in self.later if item[0] <= time.monotonic()]:
            self.later.remove(item)
            item[1]()
        if self.is_open:
            self.tell_unasked()
        if self.to_device and self.out.room():
            try:
                self.to_the_device()
            except BlockingIOError:
                pass


sys.stdin.reconfigure(line_buffering=True)
modem = Modem(open_line())
try:
    while True:
        modem.turn()
except (EOFError, OSError):
    modem.hang_up()
