#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Releases, and both versions of Redisson if REDISSON names them, at work on two locks of one server,
exclusively and, where a release can, shared, while everything fails: programs are killed and stopped
for longer than a lease, connections are cut, the server crashes and restarts with its data, forgets
scripts, and pauses. For TIME seconds, 20 by default; SEED repeats the choice of faults, not their
moments.

The judge is outside: each program writes down from when until when it believed in a hold, by the
clock that all processes share, and never claims more than it believed. First the judge has to find
faults that are made up, and a client that ignores the loss of its hold.
"""

import collections
import glob
import os
import queue
import random
import signal
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # not into the tree
import lab

TIME = float(os.environ.get("TIME") or "20")
SEED = int(os.environ.get("SEED") or time.time())
REDISSON = os.environ.get("REDISSON", "").split()
# Clients in other languages, a line each: NAME COMMAND...
BESIDE = {words[0]: words[1:] for words in map(str.split, os.environ.get("BESIDE", "").splitlines()) if words}
EACH, LIMIT = 3, 3  # programs of each release; how many may share
WAITER_MS, LEASE_MS, REDISSON_MS = 3000, 3000, 10000
TRY_MS = 120000  # for how long Redisson's threads try
NAME = "mixed"
NAMES = (NAME, NAME + ".shared")
MUST_NOT = {"overlaps": "two holders", "crowds": "too many share", "tokens": "token falls", "order": "overtaken"}
OK, TIMEOUT = "0", "-2"
APART_US = 2000000  # no request takes longer
AGAIN_US = 8000000  # a client that a fault has hit is back in line by then: it pauses for up to 5 s
STALL_US = 1000000  # longer than a pause of the server's; half of what costs a waiter its place
JUDGED = "waits that no fault has hit"
MINUTES = 300  # of a run so long, one JUDGED a minute is asked for: the hour has 40
NO_WAIT = "does not wait in"
WAITS = (3, 18, 1)  # the first Redisson that does: see "Which Redisson" in lock/JAVA.md
FEW = 3  # as often one that waits may look as if it did not
MANY, NEVER_US = 20, 10000000  # who gives up early so often, and for so long, never waits again: no fault does that

# limit 0: exclusive. Times in us, by the monotonic clock. party: of a JVM's threads.
Claim = collections.namedtuple("Claim", "begun ended asked token limit who name party", defaults=("",))


def now_us():
    return time.monotonic_ns() // 1000


class Judge:
    """What all of them believed; tests/chaos/judge says whether they can all have been right."""

    def __init__(self):
        self.claims, self.mutex = [], threading.Lock()
        self.hurt = collections.defaultdict(collections.deque)  # who, (who, party), or None for all -> when
        self.counts, self.said = collections.Counter(), collections.Counter()

    def claim(self, claim):
        with self.mutex:
            self.claims.append(claim)

    def hurts(self, who=None, at=None):
        self.hurt[who].append(at or now_us())

    def judge(self, told=3):
        """What is wrong -> how often. Who was hurt, or did not wait, counts as not in line."""
        with self.mutex:
            claims = list(self.claims)
        names = sorted({claim.name for claim in claims})
        waited = [claim.begun - claim.asked >= APART_US and not self._was_hurt(claim) for claim in claims]
        self.counts[JUDGED] = sum(waited)
        lines = ["%d %d %d %d %d %d %d %d\n" % (
            names.index(claim.name), index, claim.limit or -1, claim.token, claim.asked,
            (claim.asked + APART_US) * in_line, claim.begun, claim.ended)
                 for index, (claim, in_line) in enumerate(zip(claims, waited))]
        said = lab.subprocess.run([lab.BUILD + "/tests/chaos/judge"], input="".join(lines), text=True,
                                  stdout=lab.subprocess.PIPE, check=False).stdout.splitlines()
        for line in said[:-1][:3 * told]:
            print(line)
            if "client" in line:
                self._tell(claims[int(line.split()[2])])
        words = said[-1].split()
        return {MUST_NOT[what]: int(count) for what, count in zip(words[::2], words[1::2])
                if what in MUST_NOT and int(count)}

    def _tell(self, claim):
        if isinstance(claim.who, (Worker, Java)):
            print("#   by %s, hurt: all at %s, itself at %s, that thread at %s"
                  % (claim.who.release, *(list(self.hurt[who])[-8:] for who in whose(claim))))

    def _was_hurt(self, claim):
        since = claim.asked - AGAIN_US
        return any(since < at < claim.begun for who in whose(claim) for at in list(self.hurt[who]))

    def holds(self):
        return collections.Counter(claim.who.release for claim in list(self.claims))

    def judges(self, seconds):
        """False: so few waits were left to judge that whoever excuses everything would pass, too."""
        return seconds < MINUTES or self.counts[JUDGED] >= seconds / 60

    def impatient(self):
        """Redissons whose calls gave up early, and that are not known for it."""
        return {words[1]: count for words, count in self.said.items()
                if words[0] == NO_WAIT and count > FEW and version_of(words[1]) >= WAITS}


class Early:
    """A thread's calls for each lock that have given up at once, since one that waited: each fault may
    cause some. A call that finds the lock free, or fails, tells nothing: it would not have waited."""

    def __init__(self):
        self.row = {}  # lock -> when the first of them began, and how many they are

    def lasts(self, name, got, called, ended):
        """True: there are MANY, over NEVER_US, and this is one."""
        since, count = self.row.get(name, (called, 0))
        if got == "0" and ended - called <= APART_US:
            self.row[name] = since, count + 1
            return count + 1 >= MANY and ended - since >= NEVER_US
        if got != "error" and ended - called > APART_US:
            self.row.pop(name, None)
        return False


def whose(claim):
    """Whose hurts count for it."""
    return None, claim.who, (claim.who, claim.party)


def version_of(release):
    """Of "Redisson 4.7.0"."""
    return tuple(map(int, release.split()[1].split(".")))


class Machine:
    """Faults that nobody plans. A program that is hardly run, or a server that does not answer, sends or
    takes no heartbeat in time: a waiter may lose its place by that, and rightly."""

    def __init__(self, judge):
        self.judge, self.delays, self.looked = judge, {}, now_us()

    def watch(self, server, workers):
        for repeated in ((2 * STALL_US / 1e6, lambda: self.compare(now_us(), delays_of(workers))),
                         (0.2, lambda: self.ping(server))):
            threading.Thread(target=self._repeat, args=repeated, daemon=True).start()

    @staticmethod
    def _repeat(pause, look):
        while True:
            look()
            time.sleep(pause)

    def compare(self, looked, delays):
        """delays: (who, task) -> for how long, in all, it was ready and was not run. The kernel adds a
        delay when it ends, so one that is new ended after the last look."""
        for task, delay in delays.items():
            if delay - self.delays.get(task, 0) > STALL_US:
                self._stalled(task[0], self.looked)
        self.delays, self.looked = delays, looked

    def ping(self, server):
        asked = now_us()
        try:
            lab.Redis(server.port).call("PING")
        except (OSError, lab.Failed, lab.Refused):
            return  # it is restarted
        if now_us() - asked > STALL_US:
            self._stalled(None, asked)

    def _stalled(self, who, at):
        self.judge.counts["stalls"] += 1
        self.judge.hurts(who, at)


def text_of(*path):
    with open(os.path.join(*path), encoding="ascii") as file:
        return file.read()


def delays_of(workers, proc="/proc"):
    """Nothing where the kernel does not tell. Nobody waits for a compiler of a JVM: what it compiles is
    interpreted meanwhile."""
    delays = {}
    for worker in list(workers):
        for task in glob.glob("%s/%d/task/*" % (proc, worker.process.pid)):
            try:
                if "CompilerThre" not in text_of(task, "comm"):
                    delays[worker, task] = int(text_of(task, "schedstat").split()[1]) // 1000
            except (OSError, IndexError):
                pass  # it has ended
    return delays


class Worker:
    """A program of a release."""

    def __init__(self, judge, release, port, careless=False):
        self.judge, self.release, self.inside, self.done = judge, release, False, False
        command = BESIDE.get(release) or [lab.BUILD + "/compat/" + release + "/client"]
        self.program = lab.Program(command, port, WAITER_MS, LEASE_MS)
        self.process = self.program.process
        self.program.say("work", NAME, LIMIT, int(careless))
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self):
        while not self.done:
            try:
                line = self.program.stream.line().decode().split()
            except lab.Failed:
                return self.program.end()  # it was killed, or see join()
            self.done = line[0] == "done"
            if line[0] == "hold":
                limit, asked, begun, ended, token = map(int, line[2:])
                self.judge.claim(Claim(begun, ended, asked, token, limit, self, line[1]))
            elif len(line) == 3:
                self.inside = line[0] == "acquired" and line[2] == OK
                self.judge.said[line[0], line[2]] += 1

    def stop(self):
        self.program.say("stop")

    def join(self):
        self.thread.join(250)
        return not self.thread.is_alive() and self.done


class Java:
    """A JVM with two threads of Redisson's (tests/interop/java/Driver.java)."""

    inside = False

    def __init__(self, judge, version, port):
        self.judge, self.release, self.stopping = judge, "Redisson " + version, False
        self.mutex, self.answers = threading.Lock(), {party: queue.Queue() for party in ("a", "b")}
        for _ in range(10):
            if self._begin(version, port):
                break
        judge.hurts(self)  # its first requests take seconds: it loads its classes
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()
        self.parties = [threading.Thread(target=self._work, args=(party,), daemon=True) for party in self.answers]
        for party in self.parties:
            party.start()

    def _begin(self, version, port):
        """False: it has ended, as it does when it cannot connect in 10 s."""
        folder = "%s/interop/%s" % (lab.BUILD, version)
        self.process = lab.start(["java", "-cp", folder + "/classes:" + folder + "/lib/*", "Driver", str(port),
                                  "watchdog=%d" % REDISSON_MS], stdin=lab.subprocess.PIPE,
                                 stdout=lab.subprocess.PIPE, stderr=lab.subprocess.DEVNULL, bufsize=0)
        self.stream = lab.Stream(self.process.stdout.fileno())
        try:
            return self.stream.line()
        except lab.Failed:
            return False

    def _listen(self):
        try:
            while True:
                party, *words = self.stream.line().decode().split()
                self.answers[party].put(words)
        except lab.Failed:
            for answers in self.answers.values():
                answers.put(None)

    def _ask(self, party, name, *words):
        try:
            with self.mutex:
                lab.tell(self.process, party, name, *words)
        except lab.Failed:
            sys.exit()  # this thread: it was killed
        try:
            words = self.answers[party].get(timeout=200)
        except queue.Empty:
            self.judge.said["stuck in", self.release, " ".join(map(str, words))] += 1
            self.process.kill()
            words = None
        return sys.exit() if words is None else words

    def _work(self, party):
        since = {}  # lock -> when it asked first: a wait that ends in an error leaves its place to the next
        early = Early()
        while not self.stopping:
            name, called = random.choice(NAMES), now_us()
            asked = since.setdefault(name, called)
            got, *at = self._ask(party, name, "wait", TRY_MS, -1)
            self.judge.said["acquired by", self.release, got] += 1
            if got == "error":
                self.judge.hurts((self, party))
            else:
                del since[name]
            if early.lasts(name, got, called, now_us()):  # see "Which Redisson" in lock/JAVA.md
                self.judge.said[NO_WAIT, self.release] += 1
                self.process.kill()
            if got == "1":
                time.sleep(random.random() / 50)
                words = self._ask(party, name, "unlock")
                if len(words) == 2 and words[0].isdigit():
                    self.judge.claim(Claim(int(at[0]) // 1000, int(words[0]) // 1000, asked, 0, 0, self, name,
                                           party))
                else:
                    self.judge.said["released by", self.release, words[0]] += 1
            self._count(party, name)

    def _count(self, party, name):
        """Whatever lost its reply was asked for, and counted, twice. 3.17.7 may keep connections that
        were cut, and gets no answer any more."""
        end = lab.NOW() + 60
        while True:
            words = self._ask(party, name, "count")
            if words == ["0"]:
                return
            self.judge.said["twice by", self.release, " ".join(words[:2])] += 1
            if lab.NOW() > end:
                self.process.kill()
            time.sleep(0.1)
            if words[0] != "error":
                self._ask(party, name, "unlock")

    def stop(self):
        self.stopping = True

    def join(self):
        for party in self.parties:
            party.join(250)
        self.process.kill()


def ports_of(pid):
    """Of its TCP sockets."""
    folder = "/proc/%d/fd/" % pid
    sockets = {os.readlink(folder + name) for name in os.listdir(folder) if os.path.islink(folder + name)}
    for table in ("tcp", "tcp6"):
        with open("/proc/%d/net/%s" % (pid, table), encoding="ascii") as lines:
            for words in map(str.split, lines):
                if "socket:[%s]" % words[9] in sockets:
                    yield int(words[1].split(":")[1], 16)


class Faults:
    """What goes wrong, and how often."""

    def __init__(self, judge, server, workers, dice):
        self.judge, self.server, self.workers, self.dice = judge, server, workers, dice
        self.counts = collections.Counter()

    def one(self):
        what = self.dice.choices([self.kill, self.stop, self.cut, self.restart, self.flush, self.pause],
                                 [4, 6, 6, 0.2, 2, 2])[0]
        what()
        self.counts[what.__name__] += what != self.restart

    def _somebody(self):
        """Every other time one of those that hold."""
        inside = [worker for worker in self.workers if worker.inside]
        return self.dice.choice(inside if inside and self.dice.random() < 0.5 else self.workers)

    def kill(self):
        worker = self._somebody()
        if isinstance(worker, Java) and self.dice.random() < 0.8:
            return self.cut()  # to begin another one takes seconds of the processor
        worker.process.kill()
        self._replace(worker)

    def _replace(self, worker):
        kind, name = type(worker), worker.release.replace("Redisson ", "")
        self.workers[self.workers.index(worker)] = kind(self.judge, name, self.server.port)

    def replace_stuck(self):
        """A JVM that did not answer; no program of ours ends by itself."""
        for worker in self.workers:
            if isinstance(worker, Java) and worker.process.poll() is not None:
                self._replace(worker)

    def stop(self):
        worker = self._somebody()
        seconds = self.dice.uniform(0.1, 1.5 if isinstance(worker, Java) else 2 * LEASE_MS / 1000)
        self.judge.hurts(worker)
        worker.process.send_signal(signal.SIGSTOP)
        threading.Timer(seconds, self._go_on, (worker,)).start()

    def _go_on(self, worker):
        self.judge.hurts(worker)
        worker.process.send_signal(signal.SIGCONT)

    def _command(self, *words):
        return lab.Redis(self.server.port).call(*words)

    def cut(self):
        worker = self._somebody()
        self.judge.hurts(worker)
        try:
            ports = list(ports_of(worker.process.pid))
        except OSError:
            return  # a JVM that was replaced meanwhile
        for port in ports:
            self._command("CLIENT", "KILL", "ADDR", "127.0.0.1:%d" % port, "SKIPME", "yes")

    def restart(self):
        self.judge.hurts()
        self.server.restart()
        self.judge.hurts()
        self.counts["restart"] += 1

    def flush(self):
        self._command("SCRIPT", "FLUSH")

    def pause(self):
        self._command("CLIENT", "PAUSE", self.dice.randint(50, 500))


def report(good, what, why=""):
    print("%s mixed: %s%s" % ("ok" if good else "not ok", what, " (%s)" % why if why else ""))
    return good


def judge_sees():
    """Each kind of fault, in claims made up for it: begun, ended, asked, token, limit."""
    second, holder = 1000000, collections.namedtuple("Holder", "release")("nobody")
    planted = {"": [(10, 20, 1, 7, 0), (20, 30, 2, 8, 0), (31, 60, 3, 9, 2), (32, 60, 4, 10, 2), (60, 61, 5, 11, 0)],
               "two holders": [(10, 20, 1, 7, 0), (19, 30, 2, 8, 0)],
               "two holders ": [(10, 20, 1, 7, 2), (19, 30, 2, 8, 0)],
               "too many share": [(10, 20, 1, 7, 2), (11, 30, 2, 8, 2), (12, 30, 2, 9, 2)],
               "token falls": [(10, 20, 1, 8, 0), (21, 30, 2, 8, 0)],
               "overtaken": [(9 * second, 9 * second + 1, 5 * second, 1, 0), (10 * second, 11 * second, 1, 2, 0)]}
    good = True
    for what, claims in planted.items():
        judge = Judge()
        for claim in claims:
            judge.claim(Claim(*claim, holder, NAME))
        found = found_by(judge)
        good = report(found == [what.strip()] * bool(what), "planted: " + (what or "nothing"), str(found)) and good
    for delay_us, expected in ((STALL_US, ["overtaken"]), (STALL_US + 1, [])):
        judge = Judge()
        for claim in planted["overtaken"]:
            judge.claim(Claim(*claim, holder, NAME))
        machine = Machine(judge)
        machine.compare(6 * second, {(holder, 1): 7})
        machine.compare(8 * second, {(holder, 1): 7 + delay_us})
        found = found_by(judge)
        good = report(found == expected, "planted: ready and not run for %d us" % delay_us, str(found)) and good
    return good


def judges_enough():
    """Waits of 3 s, one each 20 s, for as long as it takes to ask for them: once nothing hits them, and
    once a fault hits each."""
    second, holder, good = 1000000, collections.namedtuple("Holder", "release")("nobody"), True
    for hit in (False, True):
        judge = Judge()
        for asked in range(20 * second, MINUTES * second, 20 * second):
            judge.claim(Claim(asked + 3 * second, asked + 4 * second, asked, asked, 0, holder, NAME))
            if hit:
                judge.hurts(holder, asked + second)
        found_by(judge)
        good = report(judge.judges(MINUTES) != hit and judge.judges(MINUTES - 1),
                      "planted: %s waits are excused" % ("all" if hit else "no"), str(judge.counts[JUDGED])) and good
    return good


def thread_is_hurt_alone():
    """The error of one thread of a JVM excuses that one, and not the other."""
    second, jvm, good = 1000000, collections.namedtuple("Holder", "release")("nobody"), True
    for party, expected in (("a", []), ("b", ["overtaken"])):
        judge = Judge()
        judge.hurts((jvm, "a"), 5 * second)
        judge.claim(Claim(9 * second, 9 * second + 1, 5 * second, 0, 0, jvm, NAME, "c"))
        judge.claim(Claim(10 * second, 11 * second, second, 0, 0, jvm, NAME, party))
        found = found_by(judge)
        good = report(found == expected, "planted: an error, and a wait of thread " + party, str(found)) and good
    return good


def impatience_is_found():
    """Calls that give up after 4 ms, so many, so far apart, and another one in their midst."""
    good, second, long_us = True, 1000000, APART_US + 1
    for what, count, apart, (name, got, took), expected in (
            ("a lock that was free", MANY, second, (NAME, "1", 9), 1),
            ("a call that failed", MANY, second, (NAME, "error", long_us), 1),
            ("a wait for another lock", MANY, second, (NAMES[1], "1", long_us), 1),
            ("a wait that got the lock", 2 * MANY - 2, second, (NAME, "1", long_us), 0),
            ("a wait in vain", 2 * MANY - 2, second, (NAME, "0", TRY_MS * 1000), 0),
            ("few in ten seconds", MANY - 1, NEVER_US // 10, (NAME, "1", 9), 0),
            ("many in nine seconds", 9 * MANY, second // MANY, (NAME, "1", 9), 0)):
        early, found = Early(), 0
        for index in range(count):
            found += early.lasts(NAME, "0", index * apart, index * apart + 4000)
            if index == count // 2 - 1:
                early.lasts(name, got, index * apart + 5000, index * apart + 5000 + took)
        good = report(found == expected, "planted: calls that give up, and " + what, str(found)) and good
    judge = Judge()
    judge.said.update({(NO_WAIT, "Redisson 3.17.7"): 9, (NO_WAIT, "Redisson 3.18.1"): FEW + 1,
                       (NO_WAIT, "Redisson 4.7.0"): FEW, ("stuck in", "Redisson 4.7.0", "count"): 9})
    found = judge.impatient()
    return report(found == {"Redisson 3.18.1": FEW + 1}, "planted: a Redisson that does not wait", str(found)) and good


def compilers_do_not_count():
    """Tasks as the kernel shows them, all of which waited for 7 us."""
    with tempfile.TemporaryDirectory() as proc:
        for name in ("java", "C2 CompilerThre", "redisson-netty-"):
            folder = "%s/1/task/%s/" % (proc, name)
            os.makedirs(folder)
            for file, text in (("comm", name + "\n"), ("schedstat", "1 7999 3\n")):
                with open(folder + file, "w", encoding="ascii") as stream:
                    stream.write(text)
        process = collections.namedtuple("Process", "pid")(1)
        found = delays_of([collections.namedtuple("Holder", "process")(process)], proc)
    names = sorted((os.path.basename(task), delay) for (_, task), delay in found.items())
    return report(names == [("java", 7), ("redisson-netty-", 7)], "planted: a compiler that is not run", str(names))


def found_by(judge):
    return list(judge.judge(told=0))


def stall_is_seen(server):
    judge = Judge()
    server.process.send_signal(signal.SIGSTOP)
    threading.Timer(1.5 * STALL_US / 1e6, server.process.send_signal, (signal.SIGCONT,)).start()
    asked = now_us()
    Machine(judge).ping(server)
    return report(list(judge.hurt[None]) and judge.hurt[None][0] < asked + STALL_US, "planted: a server that stalls")


class Failing(Java):
    """Its first wait for each lock ends in an error. It stops after the first hold."""

    def __init__(self, judge):
        self.judge, self.release, self.stopping, self.failed = judge, "nobody", False, {}

    def _ask(self, party, name, *words):
        if words[0] == "wait" and name not in self.failed:
            self.failed[name] = now_us()
            return ["error"]
        self.stopping = self.stopping or words[0] == "unlock"
        return {"wait": ["1", "0"], "unlock": ["0", "0"], "count": ["0"]}[words[0]]


def place_is_kept():
    """A thread of Redisson's whose wait has ended in an error is still in the queue, so what counts is
    when it asked first."""
    judge = Judge()
    failing = Failing(judge)
    failing._work("a")
    claim = judge.claims[0]
    hurt = [who for who, times in judge.hurt.items() if times]
    return report(claim.asked <= failing.failed[claim.name] and hurt == [(failing, claim.party)],
                  "planted: a wait that leaves its place", str(hurt[1:]))


def judge_can_fail(server):
    """Stops a holder again and again for longer than its lease, one that never looks."""
    judge = Judge()
    workers = [Worker(judge, "this", server.port, careless=index == 0) for index in range(EACH)]
    end = lab.NOW() + 60
    while "two holders" not in judge.judge(told=0) and lab.NOW() < end:
        lab.until(lambda: workers[0].inside, "a hold")
        workers[0].process.send_signal(signal.SIGSTOP)
        time.sleep(2 * LEASE_MS / 1000)
        workers[0].process.send_signal(signal.SIGCONT)
        time.sleep(1)
    for worker in workers:
        worker.process.kill()
    return report("two holders" in judge.judge(told=0), "a client that ignores its loss is found")


def run(judge, faults, seconds):
    """Faults for so long, and a restart in the middle."""
    begun = lab.NOW()
    ends, restart, told = begun + seconds, begun + seconds / 2, begun + 60
    while lab.NOW() < ends:
        time.sleep(faults.dice.uniform(0.1, 1))
        if restart and lab.NOW() > restart:
            faults.restart()
            restart = None
        faults.one()
        faults.replace_stuck()
        if lab.NOW() > told:
            print("# %.0f s: %d holds" % (lab.NOW() - begun, len(judge.claims)))
            sys.stdout.flush()
            told += 60


def left_behind(server):
    """The names of keys, when somebody has taken each lock once more."""
    last = lab.Program([lab.BUILD + "/compat/this/client"], server.port, WAITER_MS, LEASE_MS)
    for name in NAMES:
        last.say("acquire", name, 60000, LEASE_MS)
        last.expect("held", seconds=70)
        last.say("release", name)
        last.expect("released")
    return [key for key in lab.Redis(server.port).call("KEYS", "*") if not key.startswith("fairlock:")]


def main():
    releases = ["this", "later"] + lab.kept_releases() + list(BESIDE)
    server = lab.Server("--appendonly", "yes", "--appendfsync", "always")
    can_fail = all([judge_sees(), judges_enough(), thread_is_hurt_alone(), impatience_is_found(),
                    compilers_do_not_count(), place_is_kept(), stall_is_seen(server), judge_can_fail(server)])
    judge, dice = Judge(), random.Random(SEED)
    workers = [Worker(judge, release, server.port) for _ in range(EACH) for release in releases]
    workers += [Java(judge, version, server.port) for version in REDISSON]
    faults = Faults(judge, server, workers, dice)
    Machine(judge).watch(server, workers)
    run(judge, faults, TIME)
    time.sleep(2 * LEASE_MS / 1000)  # whoever is stopped goes on
    for worker in workers:
        worker.stop()
    waiting = [worker.release for worker in workers if worker.join() is False]
    wrong, holds = judge.judge(), judge.holds()
    left = left_behind(server)
    print("# seed %d, %.0f s, faults: %s" % (SEED, TIME, dict(faults.counts)))
    print("# holds: %s, %d of them shared; %s; longest wait %.1f s"
          % (dict(holds), sum(claim.limit > 0 for claim in judge.claims), dict(judge.counts),
             max(claim.begun - claim.asked for claim in judge.claims) / 1e6))
    print("# said: %s" % {" ".join(words): count for words, count in sorted(judge.said.items())})
    forgotten = judge.said["acquired", TIMEOUT]
    return 0 if all([can_fail] + [report(what not in wrong, what + ": none") for what in MUST_NOT.values()] + [
            report(not forgotten and not waiting, "nobody waits for 120 s, or ends", str((forgotten, waiting))),
            report(not left, "nothing is left", str(left)),
            report(judge.judges(TIME), "enough waits are judged", str(judge.counts[JUDGED])),
            report(not judge.impatient(), "who waits does not give up early", str(judge.impatient())),
            report(len(holds) == len(releases) + len(REDISSON), "all hold")]) else 1


if __name__ == "__main__":
    sys.exit(main())
