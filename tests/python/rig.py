# SPDX-License-Identifier: Apache-2.0
"""What the suites of the Python package share: cases with a server each that looks empty, its raw
connection, and programs that end with the suite (../interop/lab.py). A case is a function; it may
return a word on what it has seen."""

import contextlib
import os
import subprocess
import sys
import traceback
import warnings

sys.dont_write_bytecode = True  # not into the tree
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(here), "interop"))
import lab  # noqa: E402
from lab import NOW, SOON, Failed, start, until  # noqa: E402, F401

warnings.simplefilter("ignore", ResourceWarning)
CASES = []
server = None


def case(function):
    CASES.append(function)
    return function


def url(more=""):
    return f"redis://127.0.0.1:{server.port}{more}"


def redis(*words):
    """A command, on a connection of its own."""
    connection = lab.Redis(server.port)
    try:
        return connection.call(*words)
    finally:
        connection.socket.close()


def queued(name):
    return redis("LLEN", f"redisson_lock_queue:{{{name}}}")


def held(name):
    return redis("EXISTS", name) == 1


def free(name):
    return not held(name) and queued(name) == 0


def soon_free(name):
    until(lambda: free(name), f"{name} is free")


def ask(name):
    """Asks the holder to release, as lock/FORMAT.md has it."""
    token = redis("HGET", f"fairlock:{{{name}}}", "token")
    (holder,) = redis("HKEYS", name)
    return redis("PUBLISH", f"redisson_lock__channel:{{{name}}}:{holder}", token)


def took(function):
    """Seconds."""
    began = NOW()
    function()
    return NOW() - began


@contextlib.contextmanager
def raises(*kinds):
    """The block raises an exception that is of each of these kinds. Yields a list with it."""
    caught = []
    try:
        yield caught
    except BaseException as error:
        for kind in kinds:
            if not isinstance(error, kind):
                raise
        caught.append(error)
    else:
        raise Failed("nothing was raised")


def require(condition, *what):
    if not condition:
        raise Failed(" ".join(map(str, what)) or "it is not so")


def once_of_three(condition):
    """Where a machine that stops for a second may have its way. Lost means no, too."""
    import fairlock

    for _ in range(3):
        with contextlib.suppress(fairlock.Lost):
            if condition():
                return
    raise Failed("three times it is not so")


def program(code, *arguments, **options):
    """Another Python, with `code`, whose lines are read as they come."""
    return start(
        [
            sys.executable,
            "-c",
            "import sys, time, fairlock\nurl = sys.argv[1]\n" + code,
            url(),
            *map(str, arguments),
        ],
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        **options,
    )


def run():
    """Runs the cases whose names have one of the program's arguments in them, or all."""
    global server
    server = lab.Server()
    failures = 0
    for function in CASES:
        if sys.argv[1:] and not any(part in function.__name__ for part in sys.argv[1:]):
            continue
        redis("FLUSHALL")
        try:
            note = function()
            print("ok", function.__name__, flush=True)
            if note:
                print(f"# {function.__name__}: {note}", flush=True)
        except BaseException as error:
            if isinstance(error, SystemExit):
                raise
            failures += 1
            for line in traceback.format_exc().splitlines():
                print("#", line)
            print("not ok", function.__name__, flush=True)
    sys.exit(failures > 0)
