#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws boards/languages.svg: clients in five languages take turns at one lock, from a run on a real Redis.

    tests/languages/picture.py FILE

Each of them asks, holds for a moment, releases, and asks again. There is no picture unless all were served in the
order in which they were in line, one at a time, and with tokens that rise: exit status 1.
"""

import collections
import os
import sys
import threading
import time
from xml.sax.saxutils import escape

sys.dont_write_bytecode = True  # not into the tree
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../interop"))
import lab

NAME = "door:7"
LANGUAGES = [("C", "this"), ("Python", "python"), ("Node", "node"), ("Go", "go"), ("Rust", "rust")]
TURNS, PAUSE = 4, 0.12
HOLDS = [0.30, 0.22, 0.38, 0.26, 0.34]  # in s, by language, so that it does not look like a clock's work
WIDTH, LEFT, RIGHT, TOP, PITCH, BAR = 880, 84, 868, 76, 28, 18
BOTTOM = TOP + PITCH * len(LANGUAGES)
STYLE = (".title{font-weight:bold}.grid{stroke:#ccc}.end{text-anchor:end}.middle{text-anchor:middle}.mid{fill:#555}"
         ".waits{fill:#cddaea}.holds{fill:#2563ae}.turn{fill:white;text-anchor:middle}.verdict{font-weight:bold;font-size:14px}")

Turn = collections.namedtuple("Turn", "row asked got released token place")


class Contender(threading.Thread):
    """One client. places: who has asked, in this order, as the server's queue has it."""

    gate, places = threading.Lock(), []

    def __init__(self, row, port):
        super().__init__(daemon=True)
        self.row, self.turns, self.redis, self.failed = row, [], lab.Redis(port), True
        self.program = lab.Program([lab.BUILD + "/compat/" + LANGUAGES[row][1] + "/client"], port, 5000, 30000)

    def ask(self):
        """One at a time, so that it is known who is before whom."""
        with self.gate:
            before = self.in_line()
            asked = lab.NOW()
            self.program.say("acquire", NAME, 60000, 0)
            lab.until(lambda: self.in_line() != before or not self.program.silent(), "a place in line")
            self.places.append(self.row)
            return asked, len(self.places)

    def in_line(self):
        return self.redis.call("LRANGE", "redisson_lock_queue:{%s}" % NAME, 0, -1)

    def run(self):
        for _ in range(TURNS):
            asked, place = self.ask()
            token = int(self.program.expect("held", seconds=60)[0])
            got = lab.NOW()
            time.sleep(HOLDS[self.row])
            released = lab.NOW()  # before it is: the next one may be quick
            self.program.say("release", NAME)
            self.program.expect("released")
            self.turns.append(Turn(self.row, asked, got, released, token, place))
            time.sleep(PAUSE)
        self.failed = False


def run():
    """All turns, in the order in which they were had."""
    server = lab.Server()
    contenders = [Contender(row, server.port) for row in range(len(LANGUAGES))]
    for contender in contenders:
        contender.start()
        time.sleep(PAUSE)
    for contender in contenders:
        contender.join()
        contender.program.end()
    if any(contender.failed for contender in contenders):
        sys.exit("a client has failed")
    return sorted((turn for contender in contenders for turn in contender.turns), key=lambda turn: turn.got)


def wrong(turns):
    """What is wrong with them, in words, or ""."""
    for turn, later in zip(turns, turns[1:]):
        if later.got < turn.released:
            return "two holders"
        if later.token <= turn.token:
            return "a token falls"
        if later.place < turn.place:
            return "overtaken"
    return ""


def draw(turns):
    """The lines of the picture."""
    origin = min(turn.asked for turn in turns)
    most = turns[-1].released - origin

    def x(at):
        return LEFT + (at - origin) / most * (RIGHT - LEFT)

    def bar(kind, begin, end, y):
        return "<rect class='%s' x='%.1f' y='%d' width='%.1f' height='%d' rx='2'/>" % (kind, x(begin), y, x(end) - x(begin), BAR)

    def text(kind, at, y, words, more=""):
        return "<text x='%.1f' y='%d' class='%s'%s>%s</text>" % (at, y, kind, more, escape(words))

    title = "Five languages at one lock"
    yield "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='sans-serif' font-size='12'>" % (WIDTH, BOTTOM + 96)
    yield "<style>%s</style>\n<rect width='100%%' height='100%%' fill='white'/>" % STYLE
    yield "<title>%s: who waited, and who held it, when</title>" % title
    yield text("title", LEFT, 24, title, " font-size='15'")
    yield text("mid", LEFT, 44, "Each asks again when it has released. Drawn by make demo-picture SCENE=languages from a run on a real Redis.")
    for second in range(int(most) + 1):
        at = x(origin + second)
        yield "<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' class='grid'/>" % (at, at, TOP - 8, BOTTOM)
        yield text("middle tick", at, BOTTOM + 16, str(second))
    yield text("middle mid", (LEFT + RIGHT) / 2, BOTTOM + 34, "seconds since the first asked")
    for row, (language, _) in enumerate(LANGUAGES):
        yield text("end", LEFT - 12, TOP + row * PITCH + 13, language)
    for number, turn in enumerate(turns, 1):
        y = TOP + turn.row * PITCH
        yield bar("waits", turn.asked, turn.got, y)
        yield bar("holds", turn.got, turn.released, y)
        yield text("turn", (x(turn.got) + x(turn.released)) / 2, y + 13, str(number))
    y = BOTTOM + 62
    for kind, at, words in (("waits", LEFT, "waits in line"), ("holds", LEFT + 130, "holds the lock, for the turn of this number")):
        yield "<rect class='%s' x='%d' y='%d' width='24' height='%d' rx='2'/>" % (kind, at, y, BAR)
        yield text("", at + 32, y + 13, words)
    yield text("end verdict", RIGHT, y + 13, "order kept, one holder at a time")
    yield "</svg>"


def main():
    turns = run()
    fault = wrong(turns)
    if fault:
        sys.exit("no picture: " + fault)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in draw(turns))


if __name__ == "__main__":
    main()
