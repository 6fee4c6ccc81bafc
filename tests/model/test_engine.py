#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random runs of the model, whose clients are done by the library's engine (engine.c): before each step, is
the handle as the model says, with the same times? Does the engine send and connect when the model does,
with exactly these words, and is the program told what it has to be? test_engine.py [FIRST [COUNT]]: from
this seed on, so many runs of each world.

It cannot find what the model leaves out: limits of waits and offline_ms; an answer that does not come (the
model breaks the connection at any time); what no correct server says, such as an older token, or bytes
that are not RESP; refusals for good of who does not wait, or of a SUBSCRIBE; texts of scripts; re-entries with another lease;
clocks that differ, and pauses of weeks; handles on one connection, which take turns as the engine likes;
handles that are taken out; what the options add. tests/unit does all that.
"""

import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # not into the tree
HERE = os.path.dirname(os.path.abspath(__file__))
DRIVER = os.environ.get("DRIVER", os.environ.get("BUILD", "build") + "/tests/model/engine")
EPOCH = 1700000000000

# In ticks of a second, as engine.c configures the engine. Half a second is added to RESPONSE.
TIMES = dict(WAITER=5, CLAIM=5, BEAT=2, RESPONSE=2, LEASE=6, SYNCED=0, FAILOVERS=0, CRASHES=0, LEFT=0, ANY_ORDER=0,
             LATE=1, OFFLINE=1, N=2)
NOTHING = dict(ACQUIRES0=200, ACQUIRES=200, SHORT=0, RENEWS=0, TRIES=0, REENTRIES=0, CANCELS=0, BREAKS=0, FREEZES=0,
               VOIDS=0, STOPS=0, LOSES=0)
WORLDS = {
    "holds and waits": dict(REENTRIES=1),
    "holds that are renewed": dict(RENEWS=1, REENTRIES=1),
    "three clients": dict(N=3, CANCELS=1, BREAKS=1),
    "tries, and waits that are given up": dict(TRIES=1, CANCELS=2, REENTRIES=1),
    "connections that break": dict(REENTRIES=1, BREAKS=2),
    "connections that break, renewed": dict(RENEWS=1, REENTRIES=1, BREAKS=2, CANCELS=1),
    "connections that break, given up": dict(TRIES=1, CANCELS=2, BREAKS=2),
    "requests that are lost": dict(LOSES=1, BREAKS=2, CANCELS=2, TRIES=1),
    "requests that are lost, renewed": dict(LOSES=1, BREAKS=2, RENEWS=1, REENTRIES=1),
    "requests that are lost, of one": dict(LOSES=1, BREAKS=1, ACQUIRES=0),
    "requests that are lost, of one that gives up": dict(LOSES=1, BREAKS=1, ACQUIRES=0, CANCELS=1, TRIES=1),
    "a server that is slow": dict(LOSES=1, CANCELS=2),
    "a server that is slow, three clients": dict(LOSES=1, CANCELS=2, N=3),
    "a short lease": dict(LEASE=2, REENTRIES=1, BREAKS=1, CANCELS=1, TRIES=1),
    "a short lease, renewed": dict(LEASE=3, RENEWS=1, REENTRIES=1, BREAKS=1, CANCELS=1),
    "a shorter last lease": dict(SHORT=3, ACQUIRES0=2, ACQUIRES=1, BREAKS=1, CANCELS=1, REENTRIES=1),
    "requests that are refused or expired": dict(VOIDS=2, STOPS=2, BREAKS=1, CANCELS=1, TRIES=1, REENTRIES=1),
    "refused or expired, renewed": dict(VOIDS=2, STOPS=2, BREAKS=1, RENEWS=1, REENTRIES=1),
    "holds that an operator ends": dict(DROPS=1, ANY_ORDER=1, REENTRIES=1, CANCELS=1, BREAKS=1, TRIES=1),
    "holds that an operator ends, renewed": dict(DROPS=1, ANY_ORDER=1, RENEWS=1, REENTRIES=1, BREAKS=1),
    "devices that freeze": dict(FREEZES=1, BREAKS=1, CANCELS=1, TRIES=1, REENTRIES=1),
    "devices that freeze, renewed": dict(FREEZES=1, BREAKS=1, RENEWS=1, REENTRIES=1),
}
NEVER = 99
RELEASE = 4  # in in_doubt
WAITING = ("QUEUEING", "TRYING")
HOLDING = ("HELD", "REENTERING", "RELEASE_ONE")
ENDING = ("RELEASING", "LEAVING")
CANCELLED, BUSY, TIMEOUT, LOST, UNKNOWN, UNREACHABLE = "-3", "-1", "-2", "-4", "-8", "-9"
REFUSED = {"UNAVAILABLE": "-12", "OOM": "-14", "MISCONF": "-15", "DENIED": "-10", "REFUSED": "-17"}


def margin(span):
    return span // 64 + 2


class State:
    """A handle, as the model says it before a step."""

    def __init__(self, line):
        words, self.step = line.split(":", 1)
        words = words.split()
        self.phase = words[1]
        (self.queued, self.owed, self.unconfirmed, self.subscribed, self.in_doubt, self.unanswered, self.holds,
         self.token, self.ends, self.left, self.sends, self.doubt, self.up, self.frozen, self.forgotten,
         self.may_send) = map(int, words[2:])
        self.word, *self.words = self.step.split()
        self.flags = words[2:6]

    def over(self):
        return self.phase in HOLDING + ENDING and self.ends == 0


class Engine:
    """The same, as the engine says it."""

    def __init__(self, line):
        words, told, self.result = line.split("|")
        words = words.split()
        self.told = told.split()
        self.now, self.phase, self.flags = int(words[0]), words[1], words[2:6]
        (self.in_doubt, self.unanswered, self.holds, self.token, self.ends, self.left, self.sends,
         self.doubt, self.deadline, *self.counters) = map(int, words[6:17])
        self.renews, self.wants = words[17:]


class Client:
    """What is known of one besides: what its program has to be told, and how times may differ."""

    def __init__(self, number, sets):
        self.number = number
        self.renews = sets["RENEWS"]
        self.lease = sets["LEASE"]
        self.short = sets["SHORT"]
        self.acquires = sets["ACQUIRES" if number else "ACQUIRES0"]
        self.last = None        # its state before the last step
        self.result = None      # and what came of that
        self.told = []          # what its program was told, and should have been
        self.expected = []
        self.counters = [0, 0]  # how often it has acquired, and renewed
        self.pending = False    # its program waits for a result
        self.reason = None      # why it leaves: that becomes the result
        self.released = False   # its release is under way
        self.lost_level = 0     # a release of one level was, and counts as done, when the hold was lost
        self.id = None
        self.behind = 0         # how old the server's time was when it came, in ms
        self.sampled = 0        # which time that was
        self.claim_margin = 0   # by which a claim is believed in for less
        self.ahead = 0          # its time is ahead of the model's by so much, in ms
        self.sent_ahead = 0     # the same, when it sent last
        self.doubted = 0        # doubt is shorter than the model's by so much at most, in ms

    def answer(self):
        return self.last.words[0] if self.last.word == "GOT" else self.last.word

    def advance(self, state):
        """The last step has led to this state."""
        if self.last is None or self.last.word == "GOT" and self.answer() != "GRANT" and self.last.forgotten:
            return  # the answer is to a request of an earlier phase
        self.follow_times(state)
        self.follow_hold(state)
        self.begin()
        self.end(state)

    def follow_times(self, state):
        if self.last.word == "CONNECT":
            self.behind = 0
            # half a tick is added to RESPONSE, and then the margin
            self.doubted = 500 - margin(1000 * state.doubt - 500) - self.sent_ahead
        elif self.last.word == "SEND":
            self.sent_ahead = self.ahead
        elif self.last.word == "GOT" and self.answer() not in ("GRANT", "FAILED"):
            self.behind = int(self.last.words[2]) * 1000

    def sample(self, state, engine):
        """It is told the server's time; or that of a grant, which it takes for later than that by its clock."""
        if state.word == "CONNECT":
            self.sampled = engine.now
        elif state.word == "GOT" and state.words[0] == "GRANT":
            self.claim_margin = margin(engine.now - int(state.words[2]) * 1000 - self.sampled + 5000)
        elif state.word == "GOT" and state.words[0] != "FAILED" and not state.forgotten:
            self.sampled = engine.now - int(state.words[2]) * 1000

    def follow_hold(self, state):
        if self.last.phase in WAITING and state.phase == "HELD":
            self.counters[0] += 1
        if self.last.phase == state.phase == "HELD" and self.answer() == "YES" and not self.last.unconfirmed:
            self.counters[1] += 1
        if state.phase != "LOST" or self.last.phase != "LOST":
            self.lost_level = int(self.last.phase == "RELEASE_ONE" and state.phase == "LOST")

    def begin(self):
        """Its program has begun an operation, or a release has been sent or answered."""
        word, phase = self.last.word, self.last.phase
        if word in ("WAIT", "TRY"):
            self.give_up(self.last)
            self.pending = True
        elif word in ("AGAIN", "RELEASE") and phase == "HELD":
            self.pending = True
            self.released = False
        elif word == "SEND" and phase == "RELEASING":
            self.released = True
        elif word == "GOT" and self.answer() != "GRANT":
            self.released = False

    def give_up(self, state):
        """Its program has waited for a release, or a leave, for offline_ms."""
        sent = state.phase == "RELEASING" and (self.released or state.in_doubt & RELEASE)
        self.ended(UNKNOWN if sent else UNREACHABLE)

    def ended(self, result):
        """The operation ends, if there is one."""
        if self.pending:
            self.expected.append(self.reason or result)
        self.pending, self.reason = False, None

    def lost(self):
        self.expected.append("lost")
        self.ended(LOST)

    def end(self, state):
        """What has ended with the last step."""
        phase, answer = self.last.phase, self.answer()
        if phase in WAITING and state.phase == "HELD":
            self.ended("0")
        elif phase in WAITING and state.phase not in WAITING:
            self.reason = {"CANCEL": CANCELLED, "NO": BUSY, "YES": TIMEOUT}.get(answer) or REFUSED[self.result]
            if state.phase == "FREE" or not state.up:
                self.ended(None)
        elif phase in HOLDING and state.phase == "LOST":
            self.lost()
        elif phase in ("REENTERING", "RELEASE_ONE") and state.phase == "HELD":
            self.ended("0")
        elif phase in ENDING and answer == "OVER":
            self.ended(UNKNOWN)
        elif phase == "RELEASING":
            self.end_release(state, answer)
        elif phase == "LEAVING" and answer in ("BREAK", "YES", "NO", "FAILED"):
            if answer == "BREAK" and self.reason == TIMEOUT and not self.last.queued:
                self.reason = UNREACHABLE
            self.ended("0")

    def end_release(self, state, answer):
        again = self.last.in_doubt & RELEASE
        if answer == "BREAK" and self.number == 0:
            self.give_up(state)  # engine.c: this program does not wait any longer
        elif answer == "YES":
            self.ended("0")
        elif answer == "NO" and again:
            self.ended(UNKNOWN)
        elif answer == "NO" and self.pending:
            self.lost()

    def differs(self, state, engine):
        """What of the engine is not as the model says; None: all is."""
        pairs = [("phase", state.phase, engine.phase), ("flags", state.flags, engine.flags),
                 ("in_doubt", state.in_doubt, engine.in_doubt), ("unanswered", state.unanswered, engine.unanswered),
                 ("token", state.token, engine.token)]
        if state.phase in HOLDING + ("LOST", "LEAVING", "FREE"):
            pairs.append(("holds", state.holds - self.lost_level, engine.holds))
        if state.phase not in ("FREE", "LEAVING"):  # a handle that leaves does not renew, and one that was FREE never has
            pairs.append(("renews", "R" if self.renews else "-", engine.renews))
        if state.may_send != 2:
            wants = "S" if state.up and state.may_send else "C" if not state.up and state.sends == 0 else "-"
            pairs.append(("wants", wants, engine.wants))
        pairs.append(("told", self.expected, self.told))
        pairs.append(("acquired, renewed", self.counters, engine.counters))
        for name, wanted, is_so in pairs:
            if wanted != is_so:
                return "%s: %s, the engine: %s" % (name, wanted, is_so)
        return self.times_differ(state, engine)

    def times_differ(self, state, engine):
        ahead = self.ahead
        if state.phase in HOLDING:
            least, most = margin(1000 * self.lease), margin(1000 * self.lease)
            if state.unconfirmed:
                least, most = margin(1000 * min(3, self.lease)), max(margin(1000 * self.lease), self.claim_margin)
            if not within(state.ends, engine.ends, least, most + ahead):
                return "ends: in %s, the engine: in %s ms" % (state.ends, engine.ends)
            if state.sends == NEVER and engine.sends != engine.ends:
                return "sends: never, the engine: in %s ms" % engine.sends
        if state.phase in ENDING and not within(state.ends, engine.ends, 0, 500 + ahead):
            return "ends: in %s, the engine: in %s ms" % (state.ends, engine.ends)
        if state.phase != "FREE" and not within(state.left, engine.left, 0, 500 + ahead):
            return "left: for %s, the engine: for %s ms" % (state.left, engine.left)
        if state.phase not in ("FREE", "LOST") and state.sends not in (0, NEVER):
            if not within(state.sends, engine.sends, 0, 999 + ahead):
                return "sends: in %s, the engine: in %s ms" % (state.sends, engine.sends)
        if state.phase not in ("FREE", "LOST") and state.sends == 0 and engine.sends > 0:
            return "sends: now, the engine: in %s ms" % engine.sends
        if state.up and state.in_doubt and not within(state.doubt, engine.doubt, 0, self.doubted + ahead):
            return "doubt: for %s, the engine: for %s ms" % (state.doubt, engine.doubt)
        if state.phase == "FREE" and not state.in_doubt + state.forgotten and engine.deadline < 3600000:
            return "nothing to do, the engine: in %s ms" % engine.deadline
        return None

    def sent(self, state, engine):
        """What is wrong with the commands; None: nothing is."""
        mode = {"QUEUEING": 5000, "HELD": -state.holds, "REENTERING": -state.holds - 1,
                "RELEASE_ONE": -state.holds + 1}.get(state.phase, 0)
        lease = "0" if state.phase in ENDING else "%d%s" % (1000 * self.lease, "+" if self.renews else "")
        token = " %d" % state.token if state.token and state.phase != "LEAVING" else ""
        expires = EPOCH + engine.now - self.behind + 2500
        name = re.search(r"[,:](\w+\.\w+\.\w+:1)\b", engine.result)
        if name is None:
            return engine.result
        self.id = self.id or name.group(1)
        words = " /,EVALSHA,HASH,4,door,redisson_lock_queue:{door},redisson_lock_timeout:{door},fairlock:{door}," \
            "%s %d %d %s%s" % (self.id, expires, mode, lease, token)
        if state.phase == "QUEUEING" and not state.subscribed:
            words = " /,SUBSCRIBE,redisson_lock__channel:{door}:%s%s" % (self.id, words)
        is_so = re.sub(r"\b[0-9a-f]{40}\b", "HASH", engine.result)
        return None if is_so == words else "sends: %s\n  engine: %s" % (words, is_so)


def within(ticks, ms, least, most):
    """True if so many ticks of the model are these ms: up to so much less."""
    if ticks == 0:
        return ms <= 0
    return ticks == NEVER or least <= 1000 * ticks - ms <= most


def settings(world):
    return {**TIMES, **NOTHING, **WORLDS[world]}


def simulate(world, seed):
    sets = settings(world)
    words = ["spin", "-T", "-n%d" % seed, "-u40000", "-DTOKENS=250"]
    words += ["-D%s=%d" % each for each in sets.items()] + [HERE + "/test_engine.pml"]
    with tempfile.TemporaryDirectory() as folder:  # spin writes files where it runs
        spin = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              encoding="utf-8")
    lines = [line.strip() for line in spin.stdout.split("\n")]
    errors = [line for line in lines if line.startswith("spin:")]
    if errors or "processes created" not in spin.stdout:
        raise SystemExit("not ok engine: %s: seed %d of the model: %s" % (world, seed, errors or lines[-5:]))
    lines = [line for line in lines if re.match(r"\d [A-Z].*:[A-Z]|TICK$", line)]
    return ["RUN %(RENEWS)d %(LEASE)d %(SHORT)d %(ACQUIRES0)d %(ACQUIRES)d" % sets] + lines


def replay(lines):
    driver = subprocess.run([DRIVER], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, check=False,
                            timeout=60, encoding="utf-8")
    answers = driver.stdout.split("\n")[:-1]
    if driver.returncode != 0 or len(answers) != len(lines):
        answers += ["||engine.c ends with %d" % driver.returncode] * (len(lines) - len(answers))
    return answers


def compare(world, lines, answers):
    """(index of the line that differs or None, why, how many steps were compared)"""
    clients = [Client(i, settings(world)) for i in range(3)]
    ticks = 0
    for at, (line, answer) in enumerate(zip(lines, answers)):
        if line == "TICK":
            ticks += 1
        if line == "TICK" or line.startswith("RUN"):
            continue
        if answer.startswith("||"):
            return at, answer, at
        state, engine = State(line), Engine(answer)
        client = clients[int(line[0])]
        client.advance(state)
        why = None
        if not state.frozen and not state.over():
            client.ahead = engine.now - 1000 * ticks
            why = client.differs(state, engine)
        client.told += engine.told
        client.sample(state, engine)
        if client.claim_margin > 900:
            return None, "", at  # it has not heard the server for a minute: a tick is no margin then
        client.last, client.result = state, engine.result
        if state.word in ("WAIT", "TRY"):
            client.acquires -= 1
            if client.short and client.acquires == 0:
                client.lease = client.short
        if not why and state.word == "SEND":
            if engine.result == "nothing" and engine.wants == "S" and settings(world)["FREEZES"]:
                return None, "", at  # the model sends, but the engine reads first what came meanwhile
            why = client.sent(state, engine)
        elif not why and engine.result not in ("ok", *REFUSED):
            why = "the engine: " + engine.result
        if why:
            return at, why, at
    return None, "", len(lines)


def show(lines, answers, at):
    """The last steps of this client, and before them what the engine had to say."""
    steps = [i for i in range(at + 1) if lines[i][0] == lines[at][0] or lines[i] == "TICK"]
    for i in steps[-16:]:
        print("# %-60s %s" % (lines[i], answers[i]))


def main():
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    failed = 0
    for world in WORLDS:
        steps = differ = 0
        for seed in range(first, first + count):
            lines = simulate(world, seed)
            answers = replay(lines)
            at, why, compared = compare(world, lines, answers)
            steps += compared
            if at is not None:
                differ += 1
                if differ <= 2:
                    print("# %s, seed %d, step %d: %s" % (world, seed, at, why))
                    if not os.environ.get("BRIEF"):
                        show(lines, answers, at)
                if os.environ.get("BRIEF"):
                    print("not ok engine: %s" % world, flush=True)
                    sys.exit(1)
        print("%s engine: %s: %d steps" % ("not ok" if differ else "ok", world, steps), flush=True)
        failed += differ > 0
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
