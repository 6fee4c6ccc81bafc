#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Releases in one queue: the libraries of two or three of them, each in programs of its own, on a
real server. First scenes, each a few programs: the order of a line, what the commands say about it,
who is killed, and a waiter that two others do not let in. Then contests: programs that hold and
wait as they like. What happens there is read from MONITOR, which shows the commands inside scripts
in the order in which they were run; what the programs believe is read from their own logs. One
monotonic clock serves all: they are on one machine.

Arguments: parts of names of scenes and mixes, such as "1.0.0-rc1+later"; none: all. TIME: seconds for
each contest, 5 by default. REDISSON=VERSION: the mixes with that version of Redisson, which
`make interop` has got, in place of the others. LANGUAGES="go node": clients in these, by
build/compat/LANGUAGE/client, in the scenes that need no more than what peer.py asks for.
"""

import collections
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # not into the tree
import lab
import peer

TIME = float(os.environ.get("TIME", "5"))
EACH = 3  # contenders of each release
HOLD_MS, PAUSE_MS = 3, 20

REDISSON = os.environ.get("REDISSON")
LANGUAGES = os.environ.get("LANGUAGES", "").split()

# Names of releases, joined. In a pair, the last is the one that the other may do wrong to.
PAIRS = ["this+1.0.0-rc1", "1.0.0-rc1+this", "this+1.0.0-rc2", "1.0.0-rc2+this", "this+later", "later+this",
         "this+strange", "strange+this", "later+1.0.0-rc1", "1.0.0-rc1+later", "1.0.0-rc1+strange", "later+strange"]
MIXES = ["this+this", "this+1.0.0-rc1", "this+later", "this+strange", "1.0.0-rc1+later", "this+1.0.0-rc2+later"]
if REDISSON:
    PAIRS = ["this+redisson", "redisson+this", "later+redisson", "redisson+later", "redisson+1.0.0-rc1",
             "redisson+strange"]
    MIXES = ["this+redisson", "1.0.0-rc1+redisson", "later+redisson", "this+1.0.0-rc1+later+redisson"]
if LANGUAGES:
    PAIRS = ["+".join(pair) for one, next_one in zip(LANGUAGES, LANGUAGES[1:] + LANGUAGES[:1])
             for pair in (("this", one), (one, "this"), (one, next_one))]
    MIXES = []

# The most of each that is good.
LIMITS = {"forgotten": 0, "overtaken": 0, "wait_ms": 10000, "free_ms": 10000}
SOON_MS = 60000  # a waiter timeout and two heartbeats take 9 s, Redisson's own 300 s

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
        programs = [(release, program_of(release, server.port)) for _ in range(EACH)
                    for release in releases]
        for _, program in programs:
            program.say("contend", name, int(seconds * 1000), HOLD_MS, PAUSE_MS)
        self.holds, self.failed = [], []
        for release, program in programs:
            self._listen(release, program, seconds)
        self.holds.sort(key=lambda hold: hold.begun)
        self.errors = [line for line in self.redis.call("INFO", "errorstats").split("\r\n")
                       if line.startswith("errorstat_") and "NOSCRIPT" not in line]
        self.left = [key for key in self.redis.call("KEYS", "*") if not key.startswith("fairlock:") and
                     (key == name or key.endswith("{%s}" % name))]
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
        """Tokens that are not larger than the one before. Redisson's holds have none."""
        tokens = [hold.token for hold in self.holds if hold.token]
        return sum(after <= before for before, after in zip(tokens, tokens[1:]))

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


class Redisson:
    """A thread of a JVM (tests/interop/java/Driver.java), as a Program."""

    count = 0

    @classmethod
    def open(cls, port):
        """Starts the JVM; by the thread that ends last, because the JVM ends with it."""
        folder = "%s/interop/%s" % (lab.BUILD, REDISSON)
        cls.machine = lab.start(["java", "-cp", folder + "/classes:" + folder + "/lib/*", "Driver",
                                 str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, bufsize=0)
        cls.stream = lab.Stream(cls.machine.stdout.fileno())
        cls.heard = collections.defaultdict(list)
        cls.lock = threading.Lock()
        if not cls.stream.comes(60):
            raise lab.Failed("Redisson does not start")
        cls.stream.line()
        threading.Thread(target=cls._read, daemon=True).start()

    @classmethod
    def _read(cls):
        while True:
            party, *words = cls.stream.line().decode().split()
            cls.heard[party].append(words)

    def __init__(self):
        with Redisson.lock:
            Redisson.count += 1
            self.party = "p%d" % Redisson.count
        self.log = []

    def _ask(self, name, *words):
        with Redisson.lock:
            lab.tell(Redisson.machine, self.party, name, *words)

    def _hear(self, seconds=lab.SOON):
        lab.until(lambda: Redisson.heard[self.party], "an answer of Redisson's", seconds)
        return Redisson.heard[self.party].pop(0)

    def say(self, verb, name, *numbers):
        self.verb = verb
        if verb == "contend":
            threading.Thread(target=self._contend, args=(name, *numbers), daemon=True).start()
        elif verb == "acquire":
            self._ask(name, "wait", numbers[0], numbers[1] or -1)
        else:
            self._ask(name, {"release": "unlock", "id": "id"}[verb])

    def hear(self, seconds=lab.SOON):
        if self.verb == "contend":
            lab.until(lambda: self.log, "the end of a contest", seconds)
            return self.log.pop(0)
        words = self._hear(seconds)
        if self.verb == "acquire":
            return ["held", "0"] if words[0] == "1" else ["timeout"]
        return ["released"] if self.verb == "release" and len(words) == 2 else ["id", *words]

    def silent(self, seconds):
        end = lab.NOW() + seconds
        while lab.NOW() < end and not Redisson.heard[self.party]:
            time.sleep(0.01)
        return not Redisson.heard[self.party]

    def expect(self, *words, seconds=lab.SOON):
        line = self.hear(seconds)
        if line[:len(words)] != list(words):
            raise lab.Failed("Redisson answers %s, not %s" % (line, words))
        return line[len(words):]

    def _contend(self, name, for_ms, hold_ms, pause_ms):
        end = lab.NOW() + for_ms / 1000
        while lab.NOW() < end:
            asked = int(lab.NOW() * 1e6)
            self._ask(name, "wait", 60000, -1)
            got, begun = self._hear(70)
            if got != "1":
                self.log.append(["failed", asked, "timeout"])
                continue
            time.sleep(hold_ms / 1000)
            self._ask(name, "unlock")
            words = self._hear(70)
            if len(words) != 2:
                self.log.append(["failed", asked, words[0]])
            else:
                self.log.append(["hold", asked, int(begun) // 1000, int(words[0]) // 1000, 0])
            time.sleep(pause_ms / 2000)
        self.log.append(["done"])

    def end(self):
        pass


def program_of(release, port, *arguments):
    if release == "redisson":
        return Redisson()
    return lab.Program([lab.BUILD + "/compat/" + release + "/client"], port, *arguments)


def say(line):
    """In one go: scenes run side by side."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def report(good, name, why=""):
    say("%s %s%s" % ("ok" if good else "not ok", name, ": " + why if why else ""))
    return good


def within(what, name, figure, limit):
    """Whether a figure is within its limit."""
    why = "" if figure <= limit else "%d, at most %d" % (figure, limit)
    return report(figure <= limit, "%s: %s" % (what, name), why)


# Contests

def contest(mix, server):
    releases = list(dict.fromkeys(mix.split("+")))
    contest = Contest(server, releases, TIME)
    witness = contest.witness
    free_ms = contest.longest_free_ms()
    say("# %s: %d holds, %d waits, %d forgotten, %d overtaken (worst %d), longest wait %.0f ms, "
        "longest free %.0f ms" % (mix, len(contest.holds), witness.waits, witness.forgotten,
                                  witness.overtaken, witness.worst, witness.longest_ms, free_ms))
    for (giver, taker), us in sorted(contest.handovers_us().items()):
        say("# %s: handover from %s to %s: %.0f us" % (mix, giver, taker, us))
    for failure in contest.failed[:3] + contest.errors[:3] + contest.left[:3]:
        say("# %s: %s" % (mix, failure))
    counted = {"forgotten": witness.forgotten, "overtaken": witness.overtaken,
               "wait_ms": witness.longest_ms, "free_ms": free_ms}
    return all([
        report(contest.overlaps() == 0 and len(contest.holds) > 0, mix + ": one_holder"),
        report({hold.release for hold in contest.holds} == set(releases) and witness.waits > 0,
               mix + ": all_hold"),
        report(contest.falls() == 0, mix + ": tokens"),
        report(not contest.failed, mix + ": no_failure"),
        report(not contest.errors, mix + ": no_error"),
        report(not contest.left, mix + ": nothing_left"),
    ] + [within(mix, name, figure, LIMITS[name]) for name, figure in counted.items()])


# Scenes

class Line:
    """A holder and waiters, one program each, who came in this order."""

    def __init__(self, server, name, releases, wait=240000, lease=120000):
        self.redis, self.name = lab.Redis(server.port), name
        self.programs = [program_of(release, server.port) for release in releases]
        for place, program in enumerate(self.programs):
            program.say("acquire", name, wait, lease)
            if place == 0:
                self.tokens = [int(program.expect("held")[0])]
            lab.until(lambda: self._waiting() == place, "place %d in the queue" % place)

    def _waiting(self):
        return self.redis.call("LLEN", "redisson_lock_queue:{%s}" % self.name)

    def release(self, program):
        program.say("release", self.name)
        program.expect("released")

    def served(self, program, ms=SOON_MS):
        """How long it took, in ms; a failure when it is not within ms."""
        began = lab.NOW()
        self.tokens.append(int(program.expect("held", seconds=ms / 1000)[0]))
        return (lab.NOW() - began) * 1000

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        for program in self.programs:
            program.end()


def in_order(pair, server):
    """Waiters of both are served in the order in which they came, with rising tokens."""
    one, other = pair.split("+")
    with Line(server, "order." + pair, [one, other, one, other, other, one, other]) as line:
        holder, waiting, misplaced = line.programs[0], line.programs[1:], 0
        while waiting:
            line.release(holder)
            served = lab.until(lambda: [program for program in waiting if not program.silent(0)],
                               "a waiter that is served", SOON_MS / 1000)
            holder = served[0]
            misplaced += holder is not waiting[0]
            waiting.remove(holder)
            line.served(holder)
        line.release(holder)
        tokens = [token for token in line.tokens if token]
    return all([report(tokens == sorted(set(tokens)), pair + ": rising tokens"),
                within(pair, "misplaced", misplaced, 0)])


def asked(viewer, server, verb, name):
    """What a release's command says about the lock."""
    program = [lab.BUILD + "/compat/" + viewer + "/fairlock", verb, "--json", "--url",
               "redis://127.0.0.1:%d" % server.port, name]
    return json.loads(subprocess.run(program, stdout=subprocess.PIPE, check=True).stdout)


def commands(pair, server):
    """What the command of the first says about a waiter of the second."""
    viewer, shown = pair.split("+")
    # null: nobody can know
    wanted = {"kind": "redisson" if shown == "redisson" else "fairlock", "listens": True,
              "alive": None if "strange" in pair and shown != "redisson" else True}
    with Line(server, "commands." + pair, [viewer, shown]) as line:
        end = lab.NOW() + lab.SOON  # one of Redisson's queues before it listens
        while True:
            status = asked(viewer, server, "status", line.name)
            said = {field: status["waiters"][0][field] for field in wanted}
            if said == wanted or lab.NOW() > end:
                break
        counted = asked(viewer, server, "list", line.name)
        line.programs[0].say("id", line.name)
        holder = line.programs[0].expect("id")[0]
    known = (*holder_told(status), holder_told(counted)[0], counted["waiter_count"])
    return all([report(known == (holder, line.tokens[0], holder, 1), pair + ": commands", str(known)),
                within(pair, "shown_wrong", int(said != wanted), 0)])


def holder_told(told):
    """The id and the token of the holder, as JSON of the command says it: rc1 has no list of holders."""
    first = told["holders"][0] if "holders" in told else {"id": told["holder"], "token": told["token"]}
    return first["id"], first["token"]


def asking(pair, server):
    """The command of the first asks a holder of the second, which may not know what that is: it goes
    on, and so does a waiter that is told the same. One of Redisson's has no token, and is not asked."""
    asker, told = pair.split("+")
    with Line(server, "asking." + pair, [told, told]) as line:
        url = "redis://127.0.0.1:%d" % server.port
        status = subprocess.run([lab.BUILD + "/compat/" + asker + "/fairlock", "break", "--ask", "--url", url,
                                 line.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                check=False).returncode
        waiter = line.redis.call("LINDEX", "redisson_lock_queue:{%s}" % line.name, 0)
        channel = "redisson_lock__channel:{%s}:%s" % (line.name, waiter)
        line.redis.call("PUBLISH", channel, line.tokens[0] or 1700000000000000)
        silent = all(program.silent(0.3) for program in line.programs)
        line.release(line.programs[0])
        line.served(line.programs[1])
        tokens = line.tokens
    good = status == (told == "redisson") and (told == "redisson" or tokens[0] < tokens[1])
    return report(good and silent, pair + ": asking", str((status, silent, tokens)))


def last_in(pair):
    """Redisson does not see that a lock has become free, or a waiter died, unless one of our waiters
    wakes it: so there is one behind."""
    return [pair.split("+")[1]] if pair.startswith("redisson+") else []


def behind(pair, server, what, hurt):
    """How long one of the first waits behind one of the second that was hurt."""
    one, other = pair.split("+")
    with Line(server, what + "." + pair, [one, other, one] + last_in(pair)) as line:
        hurt(line.programs[1])
        line.release(line.programs[0])
        ms = line.served(line.programs[2], SOON_MS * 2)
    say("# %s: behind a waiter that was %s: %.0f ms" % (pair, what, ms))
    return within(pair, what + "_waiter_ms", ms, SOON_MS)


def killed_waiter(pair, server):
    """A killed waiter of the second costs one of the first no more than a waiter timeout."""
    return behind(pair, server, "killed", lambda program: program.end())


def stop(program):
    """Returns when each of its threads stands still: on a busy machine the last one may confirm a hold meanwhile."""
    program.process.send_signal(signal.SIGSTOP)
    tasks = "/proc/%d/task/" % program.process.pid

    def states():
        for task in os.listdir(tasks):
            with open(tasks + task + "/stat", encoding="latin-1") as file:
                yield file.read().rsplit(")", 1)[1].split()[0]

    lab.until(lambda: set(states()) == {"T"}, "a stop of all threads")


def stopped_waiter(pair, server):
    """So does one that was stopped, for which its connection stays open."""
    return behind(pair, server, "stopped", stop)


def killed_holder(pair, server):
    """A killed holder of the second costs its lease, and two fifths of a waiter timeout."""
    one, other = pair.split("+")
    with Line(server, "holder." + pair, [other, one] + last_in(pair), lease=3000) as line:
        line.programs[0].end()
        ms = line.served(line.programs[1], SOON_MS * 2)
    say("# %s: after a killed holder with a lease of 3 s: %.0f ms" % (pair, ms))
    return within(pair, "killed_holder_ms", ms, 3000 + SOON_MS)


def let_in(pair, server):
    """Two of the first, who hold for 20 ms each and never pause, let one of the second in."""
    one, other = pair.split("+")
    name, seconds = "starve." + pair, 8
    pushers = [program_of(one, server.port) for _ in range(2)]
    waiter = program_of(other, server.port)
    for program in pushers:
        program.say("contend", name, seconds * 1000, 20, 0)
    time.sleep(0.5)
    began = lab.NOW()
    waiter.say("acquire", name, 60000, 20000)
    waiter.expect("held", seconds=60)
    ms = (lab.NOW() - began) * 1000
    waiter.say("release", name)
    for program in pushers:
        while program.hear(70) != ["done"]:
            pass
    for program in [*pushers, waiter]:
        program.end()
    say("# %s: let in after %.0f ms, of %d s" % (pair, ms, seconds))
    return within(pair, "let_in_ms", ms, 6000)


def recalled(pair, server):
    """A waiter of the second recalls what one of the first keeps for 20 s, again and again."""
    one, other = pair.split("+")
    name, redis, kept, recalls = "kept." + pair, lab.Redis(server.port), [], []
    keeper, waiter = program_of(one, server.port, 5000, 30000, 20000), program_of(other, server.port)

    def hold():
        keeper.say("acquire", name, 60000, 0)
        token = keeper.expect("held")
        keeper.say("release", name)
        keeper.expect("released")
        return token

    for _ in range(5):
        # one that begins before the last release was answered is in doubt, and not kept
        lab.until(lambda: hold() and redis.call("EXISTS", name), "a lock that is kept")
        kept.append(hold() == hold() and redis.call("EXISTS", name) == 1)
        began = lab.NOW()
        waiter.say("acquire", name, 60000, 20000)
        waiter.expect("held")
        recalls.append((lab.NOW() - began) * 1000)
        waiter.say("release", name)
        waiter.expect("released")
    for program in [keeper, waiter]:
        program.end()
    say("# %s: recalled in %.0f ms" % (pair, statistics.median(recalls)))
    return all([report(all(kept), pair + ": kept"), within(pair, "recall_ms", max(recalls), 10000)])


def sharing(pair, server):
    """One of the second waits until those of the first that share have gone, has the lock alone, and
    hands it on to two that share it."""
    one, other = pair.split("+")
    name, redis = "sharing." + pair, lab.Redis(server.port)
    readers = [program_of(one, server.port, 5000, 30000) for _ in range(4)]
    writer, tokens = program_of(other, server.port, 5000, 30000), []

    def waits(program, *words):
        before = redis.call("LLEN", "redisson_lock_queue:{%s}" % name)
        program.say(*words)
        lab.until(lambda: redis.call("LLEN", "redisson_lock_queue:{%s}" % name) > before, "a place")

    def held(program):
        tokens.append(int(program.expect("held", seconds=SOON_MS / 1000)[0]))

    def leaves(program):
        program.say("unshare", name, 2)
        program.expect("released")

    for reader in readers[:2]:
        reader.say("share", name, 2, 0, 60000)
        held(reader)
    waits(writer, "acquire", name, 60000, 60000)
    for reader in readers[2:]:
        waits(reader, "share", name, 2, 60000, 60000)
    leaves(readers[0])
    alone = writer.silent(0.3)
    leaves(readers[1])
    held(writer)
    alone = alone and all(reader.silent(0.3) for reader in readers[2:])
    writer.say("release", name)
    writer.expect("released")
    for reader in readers[2:]:
        held(reader)
    beside = redis.call("HLEN", name)  # both of them, and their table
    for reader in readers[2:]:
        leaves(reader)
    left = redis.call("EXISTS", name, "redisson_lock_queue:{%s}" % name)
    for program in [*readers, writer]:
        program.end()
    return all([report(alone, pair + ": alone beside nobody"), report(beside == 3, pair + ": shared"),
                report(left == 0, pair + ": nothing is left"),
                report(sorted(set(tokens[:3])) == tokens[:3] and max(tokens[:3]) < min(tokens[3:]),
                       pair + ": tokens of those who share rise", str(tokens))])


def breaking(pair, server):
    """The command of the first ends holds of three of the second that share: one by its token, then one by its
    holder. That of rc1 knows no shares: it shows one holder, without a token, by whose id it ends all holds."""
    breaker, other = pair.split("+")
    name, redis = "breaking." + pair, lab.Redis(server.port)
    sharers = [program_of(other, server.port, 5000, 30000) for _ in range(3)]
    for sharer in sharers:
        sharer.say("share", name, 3, 0, 60000)
        sharer.expect("held", seconds=SOON_MS / 1000)
    token, left = asked("this", server, "status", name)["holders"][0]["token"], []
    for words in ["--token", str(token)], ["--holder", None]:
        words[1] = words[1] or holder_told(asked(breaker, server, "status", name))[0]
        subprocess.run([lab.BUILD + "/compat/" + breaker + "/fairlock", "break", *words, "--url",
                        "redis://127.0.0.1:%d" % server.port, name], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        left.append(asked("this", server, "status", name)["holder_count"])
    redis.call("DEL", name)
    for sharer in sharers:
        sharer.end()
    return report(left == ([3, 0] if breaker == "1.0.0-rc1" else [2, 1]), pair + ": breaking", str(left))


def needing(pair, server):
    """The lock needs what the later one knows: one of the other waits, and goes on; then it gets nothing more."""
    name, redis = "needing." + pair, lab.Redis(server.port)
    later, other = [program_of(release, server.port) for release in
                    sorted(pair.split("+"), key=lambda release: release != "later")]
    later.say("acquire", name, 0, 20000)
    later.expect("held")
    other.say("acquire", name, SOON_MS, 20000)
    lab.until(lambda: redis.call("LLEN", "redisson_lock_queue:{%s}" % name) == 1, "a place")
    redis.call("HSET", "fairlock:{%s}" % name, "needs", "later")
    told = []
    for program, line in ((later, ("release", name)), (other, ()), (other, ("release", name)),
                          (later, ("acquire", name, 0, 20000)), (other, ("acquire", name, SOON_MS, 20000)),
                          (later, ("release", name))):
        if line:
            program.say(*line)
        told.append(program.hear(SOON_MS / 1000)[0])
    later.end()
    other.end()
    return report(told == ["released", "held", "released", "held", "error", "released"], pair + ": needing", str(told))


SCENES = [recalled, sharing, breaking, needing, in_order, commands, asking, killed_waiter, stopped_waiter, killed_holder, let_in]


def plays(scene, pair):
    """Redisson has no command, and to kill one of its threads is not possible: tests/interop/mixed.c
    kills JVMs."""
    one, other = pair.split("+")
    if LANGUAGES:
        return scene in (in_order, killed_waiter, stopped_waiter, killed_holder) or (scene == let_in and one == "this")
    if scene == commands:
        return one != "redisson"
    if scene == breaking:
        return other in ("this", "later") and one not in ("strange", "redisson")
    if scene == needing:
        return {one, other} == {"this", "later"}
    if scene == sharing:
        return one in ("this", "later") and other not in ("strange", "redisson")
    if scene in (recalled, asking):
        return one != "redisson"
    return other != "redisson" or scene in (in_order, let_in)


def play(scene, pair, server):
    try:
        return scene(pair, server)
    except (lab.Failed, lab.Refused, KeyError, ValueError, subprocess.SubprocessError) as failure:
        return report(False, "%s: %s" % (pair, scene.__name__), str(failure))


def main(only):
    server = lab.Server()
    if REDISSON:
        Redisson.open(server.port)
    scenes = [(scene, pair) for scene in SCENES for pair in PAIRS if plays(scene, pair) and (
              not only or any(part in (pair, scene.__name__) for part in only))]
    results = peer.side_by_side(lambda each: play(*each, server), scenes)
    mixes = [mix for mix in MIXES if not only or any(part in (mix, "contest") for part in only)]
    results += [play(contest, mix, server) for mix in mixes]
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
