# SPDX-License-Identifier: Apache-2.0
"""A server that answers as a test wants it to: fake.py PLACE COMMAND ANSWER COMMAND ANSWER...

It takes a port that the system gives it, and writes that into the file PLACE when it listens. ANSWER
has escapes (\\r\\n), and stands for the whole of a reply; '' is none. What follows \\0 in it is said
two million times, as by a server that does not end, and then PLACE.said is made. The command * is any that has
no answer of its own, and the command '' is said to whoever connects. Where a command has several
answers, each is given once, to whichever client, and the last one ever after.
"""
import os
import socketserver
import sys
import threading

GIVES_UP_AFTER_S = 600  # whoever has started it is gone by then

place, *rest = sys.argv[1:]
answers = {b"HELLO": [b"%1\r\n+id\r\n:1\r\n"], b"TIME": [b"*2\r\n$10\r\n1700000000\r\n$1\r\n5\r\n"]}
given = {}
for command, answer in zip(rest[::2], rest[1::2]):
    given.setdefault(command.encode(), []).append(answer.encode().decode("unicode_escape").encode("latin-1"))
answers.update(given)


def answer_to(command):
    known = answers.get(command) or answers.get(b"*") or [b""]
    return known.pop(0) if len(known) > 1 else known[0]


def say(file, answer):
    begin, *again = answer.split(b"\0")
    file.write(begin)
    for part in again:
        for _ in range(100):
            file.write(part * 20000)
        open(place + ".said", "w").close()


class Session(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(answer_to(b"") if b"" in answers else b"")
        while count := self.rfile.readline():
            if count[:1] == b"*":
                words = [self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2] for _ in range(int(count[1:]))]
                say(self.wfile, answer_to(words[0]))


socketserver.ThreadingTCPServer.daemon_threads = True
server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session)
threading.Timer(GIVES_UP_AFTER_S, os._exit, [1]).start()
with open(place + ".new", "w") as file:
    print(server.server_address[1], file=file)
os.rename(place + ".new", place)
server.serve_forever()
