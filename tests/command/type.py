# SPDX-License-Identifier: Apache-2.0
"""Types lines into an interactive shell on a terminal of its own, a TAB at the end of each, and then
the return key: type.py FOLDER SHELL [ARGUMENT]... <LINES. Each line has to make the shell run a
program that puts its arguments, with a zero byte behind each, into FOLDER/arguments; they are
printed as a JSON array for each line. The first line of the input sets the shell up."""
import json, os, pty, select, sys, time

LIMIT = 30.0
folder, command = sys.argv[1], sys.argv[2:]
arguments = os.path.join(folder, "arguments")
setup, *lines = sys.stdin.read().split("\n")[:-1]
child, terminal = pty.fork()
if child == 0:
    os.execvp(command[0], command)
shown = b""


def wait_for(is_there, what):
    """Reads what the shell shows until it is there."""
    global shown
    end = time.monotonic() + LIMIT
    while not is_there():
        if time.monotonic() > end:
            sys.exit("%s did not come: %r" % (what, shown[-2000:]))
        if select.select([terminal], [], [], 0.02)[0]:
            shown += os.read(terminal, 65536)


# the mark is typed in two parts, so that its echo is not taken for it
os.write(terminal, (setup + "; printf '%s%s' rea dy\r").encode())
wait_for(lambda: b"ready" in shown, "the prompt")
for line in lines:
    os.write(terminal, (line + "\t\r").encode())
    wait_for(lambda: os.path.exists(arguments), "a program for %r" % line)
    with open(arguments, encoding="utf-8", errors="surrogateescape", newline="") as file:
        print(json.dumps(file.read().split("\0")[:-1]))
    os.unlink(arguments)
os.close(terminal)
