#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random runs of the model, each script call of which is made on a real redis-server with the scripts of
lock/scripts (LUA=folder: those of another one): answers, keys, TTLs and messages have to be those of the
model. The server's clock stands still, but for ticks of the run and a few microseconds (clock.c), so all
times are compared to the millisecond.

test_scripts.py [FIRST COUNT [KIND]]: so many runs of each kind, or of those whose names or models contain KIND,
from this seed on.

What the model leaves out, and this adds: scores, TTLs of queue and notes, the notes for people (`holder`,
`lease`), tokens as times, and that the ends of shares are rounded up.
"""

import copy
import itertools
import math
import mmap
import os
import random
import re
import select
import socket
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # not into the tree
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../interop")
import lab  # noqa: E402

SCRIPTS = os.environ.get("LUA", HERE + "/../../lock/scripts")
ACQUIRE, IF_HELD, RELEASE, LEAVE, TRY, TWICE = 1, 2, 4, 8, 16, 64  # of world.pml, as these
NEVER, NONE = 99, 98
ANSWERS = {"YES": 1, "NO": 0, "GONE": -1, "VOID": -2}
MOST_CLIENTS = 5
MOST = 3  # enter in one script: of share.lua
CHAIN = 300000  # of common.lua
DAY = 86400000
FORTNIGHT = 14 * DAY
EPOCH = 1790000000000  # ms: a change of the thousand seconds, at which notes are cleaned up

# Each kind: the model, a tick in ms, what a span lacks of its ticks, and what differs from DEFAULTS.
DEFAULTS = {"N": 3, "WAITER": 5, "CLAIM": 5, "BEAT": 2, "RESPONSE": 2, "LEASE": 6, "ACQUIRES0": 250, "ACQUIRES": 250,
            "TRIES": 1, "REENTRIES": 1, "BREAKS": 1, "LATE": 1, "OFFLINE": 1, "CANCELS": 1, "FREEZES": 1, "VOIDS": 1,
            "RENEWS": 0, "CRASHES": 0, "STOPS": 0, "SYNCED": 0, "FAILOVERS": 0, "LEFT": 0, "ANY_ORDER": 0, "SHORT": 0,
            "TOKENS": 240}  # of the model, less than a byte
KINDS = {
    "alone": ("handle.pml", 1000, 500, {}),
    "renewed, to the millisecond": ("handle.pml", 1000, 1, {"RENEWS": 1}),
    "a lease shorter than a claim": ("handle.pml", 1000, 999, {"LEASE": 3}),
    "the same, renewed": ("handle.pml", 1000, 77, {"RENEWS": 1, "LEASE": 3, "WAITER": 6, "CLAIM": 6}),
    "four, in ticks of half an hour": ("handle.pml", 2000000, 77, {"N": 4}),
    "ticks of an hour": ("handle.pml", 3600000, 77, {"RENEWS": 1}),
    "ticks of half a day": ("handle.pml", DAY // 2, 77777, {"RENEWS": 1}),
    "a fail-over": ("failover.pml", 1000, 500, {"N": 2, "FAILOVERS": 1, "ANY_ORDER": 1}),
    "a fail-over, renewed": ("failover.pml", 1000, 1, {"N": 2, "FAILOVERS": 1, "ANY_ORDER": 1, "RENEWS": 1}),
    "a fail-over to a clock behind": ("failover.pml", 1000, 500, {"N": 2, "FAILOVERS": 1, "ANY_ORDER": 1, "BEHIND": 2}),
    "shared": ("shared.pml", 1000, 450, {"SHARERS": 7, "LIMIT": 2}),
    "shared by any number": ("shared.pml", 1000, 400, {"SHARERS": 15, "N": 4, "RENEWS": 1}),
    "readers and a writer": ("shared.pml", 1000, 450, {"SHARERS": 7, "N": 4}),
    "more readers, and a writer": ("shared.pml", 1000, 450, {"SHARERS": 15, "N": 5}),
    "readers with a limit, and writers": ("shared.pml", 1000, 480, {"SHARERS": 6, "N": 4, "LIMIT": 1, "RENEWS": 1}),
    "a share shorter than a claim": ("shared.pml", 1000, 490, {"SHARERS": 6, "LEASE": 3}),
    "two limits": ("shared.pml", 1000, 450, {"SHARERS": 7, "LIMIT": 2, "OTHER": 1}),
    "two limits, and a writer": ("shared.pml", 1000, 450, {"SHARERS": 14, "N": 4, "LIMIT": 2, "OTHER": 3, "RENEWS": 1}),
    "shared, in ticks of an hour": ("shared.pml", 3600000, 1700000, {"SHARERS": 7, "LIMIT": 2, "RENEWS": 1}),
}


class Differs(Exception):
    """What the server did, and what it should have done."""


class Ends(Exception):
    """The rest of a run is no test: the notes have come to an end, which the model leaves out."""


def same(what, got, expected):
    if got != expected:
        raise Differs("%s: %s, not %s" % (what, got, expected))


def script_text(name):
    with open(SCRIPTS + "/" + name, encoding="utf-8") as file:
        return re.sub(r"^ *-- include (\S+)\n", lambda found: script_text(found.group(1)), file.read(), flags=re.M)


def end_of(now, span):
    """When a share ends: as share.lua has it, a sixteenth of the span later at most."""
    step = max(2 ** (math.frexp(span)[1] - 5), 1)
    return math.ceil((now + span) / step) * step


class Connection:
    """RESP2 over the server's Unix socket, blocking."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.settimeout(lab.SOON)
        self.stream = self.socket.makefile("rb")

    @classmethod
    def if_there(cls, path):
        try:
            return cls(path)
        except OSError:
            return None

    def send(self, *commands):
        out = []
        for words in commands:
            out.append("*%d\r\n" % len(words))
            out += ["$%d\r\n%s\r\n" % (len(word), word) for word in map(str, words)]
        self.socket.sendall("".join(out).encode())

    def read(self):
        line = self.stream.readline().decode()
        kind, rest = line[:1], line[1:-2]
        if kind == ":":
            return int(rest)
        if kind == "$":
            return None if rest == "-1" else self.stream.read(int(rest) + 2)[:-2].decode()
        if kind == "*":
            return [self.read() for _ in range(int(rest))]
        return rest if kind == "+" else "error: " + line

    def call(self, *commands):
        """The answers to these, which are sent at once."""
        self.send(*commands)
        return [self.read() for _ in commands]


class Server:
    """A redis-server whose time is what was set."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        path, clock = self.folder.name + "/socket", self.folder.name + "/clock"
        with open(clock, "w+b") as file:
            file.write(struct.pack("=Q", EPOCH * 1000))
            file.flush()
            self.clock = mmap.mmap(file.fileno(), 8)
        lab.start([os.path.abspath(lab.BUILD + "/redis-server"), "--port", "0", "--unixsocket", path, "--save", "",
                   "--dir", self.folder.name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                  env={**os.environ, "LD_PRELOAD": os.path.abspath(lab.BUILD + "/tests/model/clock.so"),
                       "MODEL_CLOCK": clock})
        self.caller = lab.until(lambda: Connection.if_there(path), "the server answers")
        self.waiters = [Connection(path) for _ in range(MOST_CLIENTS)]
        self.has_shards = self.caller.call(("COMMAND", "INFO", "SSUBSCRIBE"))[0][0]  # since Redis 7
        self.scripts = {}
        for name in ("lock", "shared"):
            self.scripts[name], = self.caller.call(("SCRIPT", "LOAD", script_text(name + ".lua")))
            same("the SHA-1 of " + name, len(self.scripts[name]), 40)

    def set_time(self, micros):
        self.clock[:] = struct.pack("=Q", micros)

    def clear(self):
        self.caller.call(("FLUSHALL",))
        for waiter in self.waiters:
            waiter.send(("RESET",))
            while waiter.read() != "RESET":
                pass


class Call:
    """A line of the run: a request, its answer, and what the model's server has then."""

    def __init__(self, words):
        parts, numbers = {}, []
        for word in words:
            if word in ("call", "server", "counts", "notes", "queue", "shares"):
                numbers = parts[word] = []
            else:
                numbers.append(int(word) if word.isdigit() else word)
        self.who, self.kind, self.token, self.age, self.lease, self.what, self.value = parts["call"]
        self.ttl, self.newest, self.released = parts["server"]
        self.counts, self.notes, self.queue = parts["counts"], parts["notes"], parts["queue"]
        shares = parts.get("shares", [0, 0, 0])
        self.shared, *self.in_use = shares[:3]
        self.shares = {n: tuple(shares[3 + 3 * n:6 + 3 * n]) for n in range((len(shares) - 3) // 3) if shares[4 + 3 * n]}
        self.begins = self.kind in (ACQUIRE, TRY)
        self.keeps = bool(self.kind & IF_HELD)
        self.holds = self.what == "YES" and (self.begins or self.keeps)
        self.waits = self.what == "NO" and self.kind == ACQUIRE


class Run:
    """One run: what the server has of it, as far as that is known beside the model."""

    OF_SERVER = ("newest", "counts", "queue", "shares", "until", "ends", "words", "fields", "ended", "scores", "heard_at",
                 "queue_until", "notes_until")

    def __init__(self, server, seed, tick, less, values):
        self.server, self.tick_ms, self.less = server, tick, less
        self.clients, self.patience, self.response = values["N"], values["WAITER"], values["RESPONSE"]
        self.sharers, self.limit, self.other = values.get("SHARERS", 0), values.get("LIMIT", 0), values.get("OTHER", 0)
        self.renews = "+" if values["RENEWS"] else ""
        self.random = random.Random(seed)
        self.name = self.random.choice(("m%d", "m{%d}x")) % seed
        base = self.name if "{" in self.name else "{%s}" % self.name
        self.keys = [self.name, "redisson_lock_queue:" + base, "redisson_lock_timeout:" + base, "fairlock:" + base]
        self.ids = ["%s:%d" % (self.random.choice(("a", "z.b", "m")), n) for n in range(self.clients)]
        self.channels = ["redisson_lock__channel:%s:%s" % (base, name) for name in self.ids]
        self.subscribe = self.random.choice(("SUBSCRIBE", "SSUBSCRIBE" if server.has_shards else "SUBSCRIBE"))
        self.listens = [False] * self.clients
        self.creeps = 1 if values["FAILOVERS"] else self.random.randrange(2)  # then a new token is the largest
        self.now, self.micros = EPOCH - self.random.randrange(200000), 0
        self.calls = 0
        self.newest, self.counts, self.queue, self.shares = 0, [NONE] * self.clients, [], {}  # after the last call
        self.tokens = {0: "0"}  # the model's: as the server has it
        self.until = 0  # the end of the lock's TTL
        self.ends, self.words = {}, {}  # of shares: when they end, and their last words
        self.fields = {}  # of the notes, but those of waiters
        self.ended = None  # what they say of the release that left the lock free
        self.scores, self.heard_at = {}, {}
        self.queue_until = self.notes_until = 0
        if values.get("BEHIND"):  # all tokens are later than the clock
            self.tokens[0] = self.fields["token"] = str((self.now + DAY) * 1000)
            server.set_time(self.now * 1000)
            server.caller.call(("HSET", self.keys[3], "token", self.tokens[0]), ("PEXPIRE", self.keys[3], 2 * DAY))

    def span(self, ticks):
        """What the model calls so many ticks, in ms: it ends with the last of them."""
        return ticks * self.tick_ms - self.less

    def is_sharer(self, n):
        return self.sharers >> n & 1

    def limit_of(self, n):
        return self.other if self.other and n == self.clients - 1 else self.limit

    def tick(self):
        self.now += self.tick_ms
        self.micros = self.random.randrange(500)
        if 0 < self.notes_until < self.now:
            raise Ends

    def listen(self, n, how):
        if how == self.listens[n]:
            return
        self.listens[n] = how
        command = self.subscribe if how else self.subscribe.replace("SUB", "UNSUB")
        answer, = self.server.waiters[n].call((command, self.channels[n]))
        same("what %s is told" % self.ids[n], answer[0], command.lower())

    def is_told(self, n, text):
        waiter = self.server.waiters[n]
        if not select.select([waiter.socket], [], [], lab.SOON)[0]:
            raise Differs("%s is not told %s" % (self.ids[n], text))
        kind = "message" if self.subscribe == "SUBSCRIBE" else "smessage"
        same("what %s is told" % self.ids[n], waiter.read(), [kind, self.channels[n], text])

    def copy_keys(self, source, target):
        words = [("DEL", key + target) for key in self.keys] + [("COPY", key + source, key + target) for key in self.keys]
        self.server.caller.call(*words)

    def falls_behind(self):
        """A replica keeps what there is now, and gets nothing more."""
        self.copy_keys("", ":replica")
        self.replica = copy.deepcopy({name: getattr(self, name) for name in self.OF_SERVER})

    def has_lost(self):
        """It becomes the master."""
        self.copy_keys(":replica", "")
        self.__dict__.update(self.replica)

    def end(self):
        """Nobody was told more."""
        for n in range(self.clients):
            answer, = self.server.waiters[n].call(("PING",))
            same("what %s is told" % self.ids[n], answer, ["pong", ""] if self.listens[n] else "PONG")

    def request(self, n, kind, token, lease, expires):
        """The answers to this request, and to questions for the keys."""
        mode = {ACQUIRE: self.span(self.patience), IF_HELD: -1, IF_HELD | TWICE: -2}.get(kind, 0)
        words = [self.ids[n], expires, mode]
        words.append("0" if kind in (RELEASE, LEAVE) else "%d%s" % (self.span(lease), self.renews))
        if token and kind != LEAVE:
            words.append(self.tokens[token])
        arguments = [" ".join(map(str, words))]
        if self.is_sharer(n):
            arguments.append(self.limit_of(n))
        if self.creeps and self.micros < 990:
            self.micros += self.random.randrange(1, 3)
        self.server.set_time(self.now * 1000 + self.micros)
        self.calls += 1
        lock, queue, scores, notes = self.keys
        return self.server.caller.call(
            ("EVALSHA", self.server.scripts["shared" if self.is_sharer(n) else "lock"], 4, *self.keys, *arguments),
            ("HGETALL", lock), ("PTTL", lock), ("LRANGE", queue, 0, -1), ("PTTL", queue),
            ("ZRANGE", scores, 0, -1, "WITHSCORES"), ("PTTL", scores), ("HGETALL", notes), ("PTTL", notes))

    def expired(self, n, kind, token, lease):
        answer = self.request(n, kind, token, lease, self.now - 1 - self.random.choice((0, self.tick_ms)))[0]
        same("the answer to a request that has expired", answer, [-2, 0, self.now])

    def call(self, its):
        if its.what == "FAILED":  # the server has refused it, so there is no call: the next one shows that nothing has changed
            return
        age = self.response + 1 if its.what == "VOID" else its.age
        expires = self.now + (self.response - age) * self.tick_ms + self.random.choice((0, self.less, self.tick_ms - 1))
        answer, lock, left, queue, queue_left, scores, scores_left, notes, notes_left = \
            self.request(its.who, its.kind, its.token, its.lease, expires)
        pairs = lambda words: dict(zip(words[::2], words[1::2]))
        granted = self.grants(its)
        self.check_lock(its, pairs(lock), left)
        self.limits = {int(size): int(until) for size, until in pairs(pairs(notes).get("limit", "").split()).items()}
        same("the queue", queue, [self.ids[n] for n in its.queue])
        self.check_answer(its, granted, answer, left)
        self.check_scores(its, granted, left, {name: int(score) for name, score in pairs(scores).items()})
        same("TTLs of queue and scores", (queue_left, scores_left), (self.queue_until - self.now,) * 2 if queue else (-2, -2))
        self.check_notes(its, granted, left, pairs(notes), notes_left)
        for n, token in granted:
            if not (its.counts[n] if its.counts[n] != NONE else its.shares[n][2]):
                self.is_told(n, "%s %d %d" % (self.tokens[token], self.now, self.span(self.patience)))
        self.newest, self.counts, self.queue, self.shares = its.newest, its.counts, its.queue, its.shares
        self.until = self.now + left

    def grants(self, its):
        """(who, token) of each grant in this call. A token is the time, or the last one and 1 if that is later."""
        last = int(self.tokens[self.newest])
        if its.begins:  # this server may have become the master without the token that the request names
            last = max(last, int(self.tokens[its.token]))
        holders = {share[0]: n for n, share in its.shares.items()}
        if its.newest not in holders:
            holders.update((its.newest, n) for n, count in enumerate(its.counts) if count != NONE)
        granted = sorted(item for item in holders.items() if item[0] > self.newest)
        for token, _ in granted:
            last = max(self.now * 1000 + self.micros, last + 1)
            self.tokens[token] = str(last)
        return [(n, token) for token, n in granted]

    def check_lock(self, its, lock, left):
        expected = {self.ids[n]: str(count) for n, count in enumerate(its.counts) if count != NONE}
        if its.shared and its.ttl:
            self.find_ends(its)
            ends = {}
            for n, (token, _, count) in its.shares.items():
                expected[self.ids[n]] = "%s %d %d %s" % (self.tokens[token], self.ends[n], count, self.words[n])
                ends[self.ends[n]] = ends.get(self.ends[n], 0) + 1
            for name, words in list(lock.items()):  # what has ended may stay for some time
                if name != "shared" and len(words.split()) == 4 and int(words.split()[1]) <= self.now:
                    del lock[name]
            words = lock.pop("shared", "").split()
            same("the count of shares", {int(at): int(n) for at, n in zip(words[::2], words[1::2]) if int(at) > self.now}, ends)
            same("the TTL of the lock", left, max(ends) - self.now)
        else:
            same("the TTL of the lock", left, self.span(its.ttl) if its.ttl else -2)
        same("the lock", lock, expected)

    def find_ends(self, its):
        """When each share ends, and its last words: the lease, if that is known."""
        for n, (token, _, count) in its.shares.items():
            old = self.shares.get(n)
            if token > self.newest:
                self.ends[n] = end_of(self.now, self.span(its.lease if count else self.patience))
                self.words[n] = "%d%s" % (self.span(its.lease), self.renews) if count else "0"
            elif n == its.who and its.holds:
                alone = self.counts[n] != NONE
                confirms = its.keeps and (self.counts[n] if alone else old[2]) == 0
                last, mine = self.until if alone else self.ends[n], end_of(self.now, self.span(its.lease))
                if alone or confirms or mine >= last:
                    self.words[n] = "%d%s" % (self.span(its.lease), self.renews)
                self.ends[n] = mine if confirms or mine >= last else last

    def check_answer(self, its, granted, answer, left):
        if its.holds:
            number = int(self.tokens[its.value])
        elif its.what == "NO" and its.begins:
            number = left
            limit, held = self.limit_of(its.who), len(its.shares)
            binding = [until for size, until in self.limits.items() if size <= held and until > self.now]
            if self.is_sharer(its.who) and (limit and held >= limit or binding):
                number = min(binding + [self.ends[n] for n in its.shares]) - self.now
            if its.waits and its.queue[0] != its.who and not granted:
                number = -1
            if its.waits and self.is_sharer(its.who) and self.is_near(its, granted):
                number = self.span(self.patience) / 25
        else:
            number = 0
        same("the answer", answer, [ANSWERS[its.what], math.floor(number), self.now])

    def is_near(self, its, granted):
        """It is the first to share behind one who listens and wants the lock alone, or has just got it: it asks often."""
        behind = its.queue
        if granted and its.counts != [NONE] * self.clients:
            heir = granted[0][0]
            before = self.queue[:self.queue.index(heir)]
            behind = [n for n in its.queue if n not in before]
        elif its.counts != [NONE] * self.clients:
            return False  # somebody has it alone, and nobody may enter
        elif len(granted) == MOST:
            return False  # the script has looked no further
        else:
            for place, n in enumerate(its.queue):
                behind = its.queue[place:]
                if n == its.who and n in self.queue or its.notes[n] == 0:
                    return False
                if self.listens[n]:
                    if self.is_sharer(n):
                        return False
                    break
            else:
                return False
        sharers = [n for n in behind if self.is_sharer(n) and (n == its.who or its.notes[n])]
        return sharers[:1] == [its.who] or not sharers and its.who not in self.queue

    def check_scores(self, its, granted, left, scores):
        """Redisson's: set when a waiter queues, or is heard first in a hundred seconds; and of the first in
        line, with each lease."""
        mine = self.shares.get(its.who)
        gone = mine and self.ends[its.who] > self.now and its.shared and (its.who not in its.shares or its.shares[its.who][0] != mine[0])
        if its.queue and its.queue[0] in self.queue and (granted or its.holds or gone):
            self.scores[its.queue[0]] = self.now + left + CHAIN + 100
        if its.waits and (its.who not in self.queue or self.heard_at[its.who] // 10 ** 8 != self.now // 10 ** 5):
            score = self.now + max(left, 0) + (its.queue.index(its.who) + 1) * CHAIN
            self.scores[its.who] = max(score, self.scores[its.who] if its.who in self.queue else 0)
            self.queue_until = self.now + FORTNIGHT
        same("the scores", scores, {self.ids[n]: self.scores[n] for n in its.queue})

    def check_notes(self, its, granted, left, notes, notes_left):
        sharer = self.is_sharer(its.who)
        lease = " %d%s" % (self.span(its.lease), self.renews)
        for n, token in granted:
            self.fields.update(token=self.tokens[token], holder=self.ids[n], lease=self.tokens[token])
            if its.counts[n] not in (0, NONE):
                self.fields["lease"] += lease
        renews = its.holds and not granted
        changes = renews and not sharer and its.counts[its.who] != self.counts[its.who]
        if changes:
            self.fields["lease"] = self.tokens[its.newest] + (lease if its.ttl == its.lease else "")
        if its.newest:
            self.fields["released"] = self.tokens[its.released] if its.released else "0"
        if its.waits:
            self.heard_at[its.who] = self.now * 1000 + self.micros
        expected = dict(self.fields)
        for n in its.queue:
            expected[self.ids[n]] = "%d %d %d" % (*divmod(self.heard_at[n], 10 ** 6), self.span(self.patience)) + \
                (" S%d" % self.limit_of(n) if self.is_sharer(n) else "")
            dead = self.heard_at[n] // 1000 + self.span(self.patience) <= self.now
            same("whether the model has %s for dead" % self.ids[n], its.notes[n] == 0, dead)
        if self.sharers:
            notes.pop("limit", None)
            self.check_limits(its)
        ended = notes.pop("ended", self.ended)
        if ended != self.ended:
            same("the end of the hold", ended, "%s %d" % (notes["released"], self.now * 1000 + self.micros))
            same("who holds when a hold has ended so", left, -2)
        self.ended = ended
        same("the notes", notes, expected)
        # They last for a day after the lease, or nearly: a grant looks at them once in a thousand seconds. A renewal
        # always writes, because WAIT waits for the last write.
        least = 0
        if its.ttl:
            least = left + DAY - 1000000
        elif its.waits:
            least = DAY - 100000
        if renews and not changes:
            least = (self.span(its.lease) if sharer else left) + 2 * DAY
        if notes and not least <= notes_left <= 9 * self.tick_ms + 2 * DAY:
            raise Differs("the notes end in %d ms, not in %d or more" % (notes_left, least))
        self.notes_until = self.now + notes_left if notes else 0

    def check_limits(self, its):
        """The model counts their times only if somebody names another one."""
        in_use = {size: until for size, until in self.limits.items() if until > self.now}
        if self.other:
            ticks = {size: math.ceil((until - self.now) / self.tick_ms) for size, until in in_use.items()}
            expected = {size: left for size, left in zip((self.limit, self.other), its.in_use) if size and left}
            same("the limits in use", ticks, expected)
        elif its.shared and its.ttl:
            last = max(self.ends[n] for n in its.shares)
            same("the limit in use", all(until >= last for until in in_use.values()), True)
            same("the limits in use", list(in_use), [self.limit] if self.limit else [])


def simulate(server, seed, model, values):
    """The lines of a random run."""
    words = ["-D%s=%d" % item for item in values.items()]
    out = subprocess.run(["spin", "-T", "-n%d" % seed, "-u%d" % (100000 if model == "handle.pml" else 200000), *words, '-DMODEL=\\"%s\\"' % model, HERE + "/test_scripts.pml"],
                         cwd=server.folder.name, stdout=subprocess.PIPE, encoding="utf-8", check=False).stdout
    if "spin:" in out:
        raise Differs("the model itself fails: " + " ".join(re.findall("spin:.*", out)))
    whole = re.compile(r"(tick|listens|expired|call|falls_behind|has_lost)[ \w]*").fullmatch  # the last one may be cut off
    return list(itertools.takewhile(whole, out.split("\n")))


def replay(server, seed, kind):
    """The run of that seed, and how it differs: None if it does not."""
    model, tick, less, options = KINDS[kind]
    values = {**DEFAULTS, **options}
    server.clear()
    run, line = Run(server, seed, tick, less, values), ""
    try:
        for line in simulate(server, seed, model, values):
            words = line.split()
            if words[0] == "tick":
                run.tick()
            elif words[0] == "listens":
                run.listen(int(words[1]), words[2] != "0")
            elif words[0] in ("falls_behind", "has_lost"):
                getattr(run, words[0])()
            elif words[0] == "expired":
                run.expired(*map(int, words[1:]), values["LEASE"])
            else:
                run.call(Call(words))
        line = "its end"
        run.end()
    except Ends:
        pass
    except Differs as differs:
        return run, "%s: %s" % (line, differs)
    except Exception:
        print("# %s, seed %d, %s" % (kind, seed, line))
        raise
    return run, None


def main():
    first, count = map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (5, 8)  # which find the mutants that they can
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    server, failed = Server(), 0
    for place, kind in enumerate(KINDS):
        if only not in KINDS[kind][0] + " " + kind:
            continue
        calls, why = 0, None
        for seed in range(first, first + count):
            run, why = replay(server, seed * len(KINDS) + place, kind)
            calls += run.calls
            if why:
                print("# in run %d: %s" % (seed, why))
                failed = 1
                break
        print("%s scripts as in the model: %s: %d calls" % ("not ok" if why else "ok", kind, calls), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
