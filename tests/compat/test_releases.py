#!/usr/bin/env python3
"""Releases in one queue: the libraries of two or three of them, each in programs of its own,
contend for one lock on a real server. What happens there is read from MONITOR, which shows the
commands inside scripts in the order in which they were run; what the programs believe is read from
their own logs. One monotonic clock serves all: they are on one machine.

Arguments: parts of names of mixes, such as "0.2+later"; none: all. TIME: seconds for each mix, 5
by default. RELEASES=NAME=FOLDER,... adds builds of other releases to each mix that is named with
them.
"""

import collections
import os
import re
import statistics
import sys
import threading

import lab

TIME = float(os.environ.get("TIME", "5"))
EACH = 3  # contenders of each release
HOLD_MS, PAUSE_MS = 3, 20

# Names of releases, joined; the first is the newest.
MIXES = ["this+this", "this+0.2", "this+later", "this+strange", "0.2+later", "this+0.2+later"]

WORDS = re.compile(rb'"((?:[^"\\]|\\.)*)"')


class Witness:
    """Reads MONITOR: who came, who was given the lock, in the order of the server."""

    def __init__(self, port, name):
        self.connection = lab.Redis(port)
        self.connection.call("MONITOR")
        self.lines = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        name = name.encode()
        self.name, self.queue = name, b"redisson_lock_queue:{%s}" % name

    def _read(self):
        while not self.lines or b'"echo" "the end"' not in self.lines[-1]:
            self.lines.append(self.connection.stream.line())

    def end(self, redis):
        redis.call("echo", "the end")
        self.thread.join(lab.SOON)
        self._judge()

    def _judge(self):
        waiting = collections.OrderedDict()  # id -> [when it came, how often overtaken]
        holder = None
        self.waits = self.forgotten = self.overtaken = self.worst = 0
        self.longest_ms = 0
        for line in self.lines:
            if b' lua] "' not in line:
                words = WORDS.findall(line)
                request = words[-1].split() if words else []
                # leaves the queue
                if words and words[0].lower() in (b"evalsha", b"eval") and request[2:] == [b"0", b"0"]:
                    waiting.pop(request[0], None)
                continue
            at = float(line[1:line.index(b" ")])
            words = WORDS.findall(line)
            verb = words[0].lower()
            if verb == b"rpush" and words[1] == self.queue:
                if words[2] in waiting:
                    self.forgotten += 1
                else:
                    waiting[words[2]] = [at, 0]
            elif verb == b"hset" and words[1] == self.name:
                came = waiting.get(words[2])
                if came is None and words[2] == holder:
                    continue  # it confirms
                holder = words[2]
                self._grant(waiting, words[2], at)
            elif (verb == b"del" and words[1] == self.name or
                  verb == b"hdel" and words[1] == self.name and words[2] == holder):
                holder = None

    def _grant(self, waiting, owner, at):
        for waiter in waiting:
            if waiter == owner:
                break
            waiting[waiter][1] += 1
        if owner in waiting:
            came, overtaken = waiting.pop(owner)
            self.waits += 1
            self.overtaken += overtaken > 0
            self.worst = max(self.worst, overtaken)
            self.longest_ms = max(self.longest_ms, (at - came) * 1000)


class Contest:
    """What the programs say: Hold(asked, begun, ended, token, release), times in us."""

    Hold = collections.namedtuple("Hold", "asked begun ended token release")

    def __init__(self, server, releases, seconds):
        name = "+".join(releases)
        self.redis = lab.Redis(server.port)
        self.redis.call("FLUSHALL")
        self.redis.call("CONFIG", "RESETSTAT")
        self.witness = Witness(server.port, name)
        programs = [(release, lab.Program([folder_of(release) + "/client"], server.port))
                    for _ in range(EACH) for release in releases]
        for _, program in programs:
            program.say("contend", name, int(seconds * 1000), HOLD_MS, PAUSE_MS)
        self.holds, self.failed = [], []
        for release, program in programs:
            self._listen(release, program, seconds)
        self.holds.sort(key=lambda hold: hold.begun)
        self.errors = [line for line in self.redis.call("INFO", "errorstats").split("\r\n")
                       if line.startswith("errorstat_") and "NOSCRIPT" not in line]
        self.left = [key for key in self.redis.call("KEYS", "*") if not key.startswith("fairlock:")]
        self.witness.end(self.redis)
        for _, program in programs:
            program.end()

    def _listen(self, release, program, seconds):
        while True:
            line = program.hear(seconds + 70)
            if line[0] == "hold":
                self.holds.append(self.Hold(*map(int, line[1:]), release))
            elif line[0] == "failed":
                self.failed.append((release, line[2]))
            else:
                return

    def overlaps(self):
        return sum(next.begun < hold.ended for hold, next in zip(self.holds, self.holds[1:]))

    def falls(self):
        """Tokens that are not larger than the one before."""
        return sum(next.token <= hold.token for hold, next in zip(self.holds, self.holds[1:]))

    def longest_free_ms(self):
        """The longest time for which nobody held the lock although somebody waited for it."""
        longest, asked = 0, float("inf")
        for hold, after in zip(self.holds[-2::-1], self.holds[:0:-1]):
            asked = min(asked, after.asked)  # the first of those that hold later
            longest = max(longest, after.begun - max(hold.ended, asked))
        return longest / 1000

    def handovers_us(self):
        """(from, to) -> the median time from one's release to the other's belief, in us."""
        times = collections.defaultdict(list)
        for hold, after in zip(self.holds, self.holds[1:]):
            if after.asked < hold.ended:
                times[hold.release, after.release].append(after.begun - hold.ended)
        return {pair: statistics.median(some) for pair, some in times.items()}


def folder_of(release):
    return lab.BUILD + "/compat/" + release


def known_failures():
    """(mix, check) of tests/compat/*/fails: a line each, MIX CHECK, then why."""
    here = os.path.dirname(os.path.abspath(__file__))
    known = set()
    for release in sorted(os.listdir(here)):
        path = os.path.join(here, release, "fails")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                if line.strip() and not line.startswith("#") and not line.startswith(" "):
                    known.add(tuple(line.split()[:2]))
    return known


def judge(mix, server, known):
    releases = list(dict.fromkeys(mix.split("+")))
    contest = Contest(server, releases, TIME)
    witness = contest.witness
    free_ms = contest.longest_free_ms()
    print("# %s: %d holds, %d waits, %d forgotten, %d overtaken (worst %d), longest wait %.0f ms, "
          "longest free %.0f ms" % (mix, len(contest.holds), witness.waits, witness.forgotten,
                                    witness.overtaken, witness.worst, witness.longest_ms, free_ms))
    for (giver, taker), us in sorted(contest.handovers_us().items()):
        print("# %s: handover from %s to %s: %.0f us" % (mix, giver, taker, us))
    checks = [
        ("one_holder", contest.overlaps() == 0 and len(contest.holds) > 0),
        ("all_hold", {hold.release for hold in contest.holds} == set(releases)),
        ("tokens", contest.falls() == 0),
        ("no_failure", not contest.failed),
        ("no_error", not contest.errors),
        ("nothing_left", not contest.left),
        # a waiter timeout, and what a loaded machine may add
        ("free", free_ms < 10000),
        ("remembered", witness.forgotten == 0),
        ("order", witness.overtaken == 0 and witness.waits > 0),
    ]
    for failure in contest.failed[:3] + contest.errors[:3] + contest.left[:3]:
        print("# %s: %s" % (mix, failure))
    good = True
    for name, passed in checks:
        expected = (mix, name) not in known
        note = "" if expected else " fails, as listed"
        print("%s %s: %s%s" % ("ok" if passed == expected else "not ok", mix, name, note))
        good = good and passed == expected
    sys.stdout.flush()
    return good


def main():
    server = lab.Server()
    known = known_failures()
    only = sys.argv[1:]
    mixes = [mix for mix in MIXES if not only or any(part in mix for part in only)]
    results = [judge(mix, server, known) for mix in mixes]
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
