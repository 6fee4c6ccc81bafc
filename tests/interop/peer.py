#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The other side: whether a client, in any language, keeps lock/FORMAT.md.

peer.py [--port PORT] [--list] [CHECK...] -- PROGRAM [ARGUMENT...]

Runs PROGRAM with a server (its own, build/redis-server, unless --port names one for it alone) and
tells it by lines what to do (RELEASES.md). It plays all others itself, by raw commands: holders,
waiters of this format, of a later one, of Redisson's, and dead ones. Each check is one rule; it
prints "ok NAME", "not ok NAME: why", or "skip NAME: why" where the program has no such verb. CHECK:
parts of names of checks. --list prints the rules.

A check has a lock, connections and programs of its own, so some run side by side.
"""

import concurrent.futures
import os
import re
import signal
import sys
import time

sys.dont_write_bytecode = True  # not into the tree
import lab
import proxy
from lab import Failed, until

CHAIN, DAY = 300000, 86400000
PATIENT = 600000  # the longest waiter timeout: no heartbeat comes by the clock meanwhile
BRISK = 2000  # the shortest one
CHECKS = {}

# The commands that a user has the rights to use in scripts: lock/PRODUCTION.md.
RIGHTS = set("""time publish spublish pubsub del pttl pexpire hget hmget hset hdel hgetall hlen lindex
lrange lpos lpush rpush lrem zadd zscore zrem zincrby""".split())

# What a peer that gives the lock to an id does: ARGV id, TTL, count, what the message says more,
# or "-" for none.
GIVE = """
local call, t = redis.call, redis.call('time')
local now = t[1] .. string.format('%03d', math.floor(t[2] / 1000))
local last = tonumber(call('hget', KEYS[4], 'token')) or 0
local token = string.format('%.0f', math.max(last + 1, t[1] * 1000000 + t[2]))
call('hset', KEYS[4], 'token', token, 'holder', ARGV[1])
call('pexpire', KEYS[4], ARGV[2] + 172800000)
call('del', KEYS[1])
call('hset', KEYS[1], ARGV[1], ARGV[3])
call('pexpire', KEYS[1], ARGV[2])
call('hdel', KEYS[4], ARGV[1])
call('lrem', KEYS[2], 1, ARGV[1])
call('zrem', KEYS[3], ARGV[1])
local message = token .. ' ' .. now .. ' ' .. ARGV[2] .. ARGV[4]
if ARGV[4] ~= '-' then
  call('publish', 'redisson_lock__channel' .. string.sub(KEYS[2], 20) .. ':' .. ARGV[1], message)
end
return {token, message}
"""

# What a peer that lets an id in does, instead of whoever has the lock: ARGV id, token, ends.
LET_IN = """
redis.call('del', KEYS[1])
redis.call('hset', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3] .. ' 0 0', 'shared', ARGV[3] .. ' 1')
redis.call('pexpireat', KEYS[1], ARGV[3])
redis.call('hdel', KEYS[4], ARGV[1])
redis.call('lrem', KEYS[2], 1, ARGV[1])
redis.call('zrem', KEYS[3], ARGV[1])
"""

# How much a score is above the end of the lock's TTL.
OVER = """
local t = redis.call('time')
local ends = t[1] * 1000 + math.floor(t[2] / 1000) + redis.call('pttl', KEYS[1])
return redis.call('zscore', KEYS[2], ARGV[1]) - ends
"""


def check(function):
    CHECKS[function.__name__] = function
    return function


def require(condition, what):
    if not condition:
        raise Failed(what)


class Skipped(Exception):
    """The program cannot do this."""


class Waiter:
    """A waiter that the peer plays."""

    def __init__(self, stage, name, note, listens, score):
        self.id = name
        self.stage = stage
        self.channel = stage.channel(name)
        self.connection = lab.Redis(stage.port)
        if listens:
            self.connection.call(listens, self.channel)
        stage.call("RPUSH", stage.queue, name)
        place = stage.call("LLEN", stage.queue) - 1
        stage.call("ZADD", stage.timeout, score or stage.now_ms() + 60000 + place * CHAIN, name)
        if note:
            stage.call("HSET", stage.notes, name, note)

    def hears(self, seconds=lab.SOON):
        message = self.connection.message(seconds)
        require(message, "%s is told nothing" % self.id)
        return message[2]

    def hears_grant(self):
        text = self.hears()
        grant = re.fullmatch(r"(\d+) (\d+) (\d+)( .*)?", text)
        require(grant, "%s is told '%s', no grant" % (self.id, text))
        return grant

    def gone(self):
        stage = self.stage
        left = (stage.call("LPOS", stage.queue, self.id), stage.call("ZSCORE", stage.timeout, self.id),
                stage.call("HGET", stage.notes, self.id))
        require(left == (None, None, None), "%s leaves place, score, note %s" % (self.id, left))


class Stage:
    """One check: a lock, and who plays with it."""

    def __init__(self, port, words, lock):
        braced = lock if "{" in lock else "{%s}" % lock
        self.port, self.words, self.lock = port, words, lock
        self.queue, self.timeout = "redisson_lock_queue:" + braced, "redisson_lock_timeout:" + braced
        self.notes, self.channels = "fairlock:" + braced, "redisson_lock__channel:" + braced + ":"
        self.redis = lab.Redis(port)
        self.call = self.redis.call
        self.began = lab.NOW()
        self.programs, self.proxies = [], []

    def channel(self, name):
        return self.channels + name

    def program(self, waiter_ms=PATIENT, lease_ms=30000, port=None):
        program = lab.Program(self.words, port or self.port, waiter_ms, lease_ms)
        self.programs.append(program)
        program.say("id", self.lock)
        program.id = program.expect("id")[0]
        return program

    def require_programs(self):
        """One that has ended has refused nothing, and kept no rule."""
        require(all(program.process.poll() is None for program in self.programs), "a program has ended")

    def end(self):
        for program in self.programs:
            program.end()
        for one in self.proxies:
            one.close()

    def proxy(self):
        self.proxies.append(proxy.Proxy(self.port, self.lock))
        return self.proxies[-1]

    def now_us(self):
        seconds, micros = self.call("TIME")
        return int(seconds) * 1000000 + int(micros)

    def now_ms(self):
        return self.now_us() // 1000

    # What the server holds.

    def holders(self):
        words = self.call("HGETALL", self.lock)
        return dict(zip(words[::2], words[1::2]))

    def note(self, field):
        return self.call("HGET", self.notes, field)

    def line(self):
        return self.call("LRANGE", self.queue, 0, -1)

    def score(self, name):
        return float(self.call("ZSCORE", self.timeout, name) or 0)

    def require_score(self, name, more):
        """The score is now, what is left of the lock's TTL, and `more`, within 5 s."""
        # A server that is held up between TIME and PEXPIRE, or TIME and PTTL, makes it less, never more.
        over = max(self.call("EVAL", OVER, 2, self.lock, self.timeout, name) for _ in range(5)) - more
        require(-100 <= over < 5000, "the score is off by %d ms" % over)

    def require_renewal_scores(self):
        """The holder's next renewal changes the score of the first in line to what FORMAT.md says."""
        waiter, far = self.waiter(), 9 * 10 ** 12
        self.call("ZADD", self.timeout, "XX", far, waiter.id)
        until(lambda: self.score(waiter.id) < far, "another score")
        self.require_score(waiter.id, CHAIN + 100)

    def ttl_at_least(self, key, least):
        """That was its TTL, or more, when the check began, or later."""
        ttl = self.call("PTTL", key)
        require(ttl >= least - (lab.NOW() - self.began) * 1000 - 1, "the TTL of %s is %d" % (key, ttl))

    def heard_ms(self, name):
        words = (self.note(name) or "0 0").split()
        return int(words[0]) * 1000 + int(words[1]) / 1000

    # What others do.

    def give(self, name, ttl=60000, count=1, more="-"):
        keys = (self.lock, self.queue, self.timeout, self.notes)
        return self.call("EVAL", GIVE, 4, *keys, name, ttl, count, more)

    def others_hold(self):
        return self.give("other:1")[0]

    def waiter(self, name="waiter:1", timeout=60000, more="", listens="SUBSCRIBE", ago=0):
        us = self.now_us() - ago * 1000
        note = "%d %06d %d%s" % (us // 1000000, us % 1000000, timeout, more)
        return Waiter(self, name, note, listens, None)

    def unknown(self, name="unknown:1", listens="SUBSCRIBE"):
        return Waiter(self, name, "L2 at 1700000000 for 5000", listens, None)

    def redisson(self, name="redisson:1", listens="SUBSCRIBE", score=None):
        return Waiter(self, name, None, listens, score)

    def woken(self, waiter, ago):
        """It was woken this long ago, ms."""
        woken = "%s %s" % (waiter.id, self.call("ZSCORE", self.timeout, waiter.id))
        self.call("HSET", self.notes, "woken", woken, "since", self.now_ms() - ago)

    # What the program does.

    def holds(self, program, lease=20000):
        program.say("acquire", self.lock, 0, lease)
        return int(program.expect("held")[0])

    def releases(self, program):
        program.say("release", self.lock)
        program.expect("released")

    def loses(self, program):
        program.say("release", self.lock)
        line = " ".join(program.hear())
        require(line in ("lost", "not-held"), "it says %s to the release of a lost hold" % line)

    def waits(self, program, wait=60000, lease=20000):
        program.say("acquire", self.lock, wait, lease)
        until(lambda: self.note(program.id), "a note of %s" % program.id)

    def busy(self, program):
        program.say("acquire", self.lock, 0, 20000)
        program.expect("busy")

    def has_turned(self, program):
        """The program has had the time to do something about what it was told."""
        time.sleep(0.5)
        for _ in range(3):  # a loop has come round in between, however slow the machine is
            program.say("id", self.lock)
            program.expect("id")

    # What a program that shares does. Its limit is 2, unless it is told another one.

    def sharer(self, limit=2, **options):
        program = self.program(**options)
        program.limit = limit
        program.say("share-id", self.lock, limit)
        line = program.hear()
        if line == ["unsupported"]:
            raise Skipped("it does not share")
        program.id = line[1]
        return program

    def shares(self, program, lease=20000):
        program.say("share", self.lock, program.limit, 0, lease)
        return int(program.expect("held")[0])

    def does_not_share(self, program, answer="busy"):
        program.say("share", self.lock, program.limit, 0, 20000)
        program.expect(answer)

    def lets_in(self, program):
        """With a claim of its own, instead of whoever holds; it is told nothing. Returns the token."""
        token, keys = self.now_us() + 1000000, (self.lock, self.queue, self.timeout, self.notes)
        self.call("HSET", self.notes, "token", token, "holder", program.id)
        self.call("EVAL", LET_IN, 4, *keys, program.id, token, self.now_ms() + 60000)
        return token

    def waits_to_share(self, program):
        program.say("share", self.lock, program.limit, 60000, 20000)
        until(lambda: self.note(program.id), "a note of %s" % program.id)

    def unshares(self, program):
        program.say("unshare", self.lock, program.limit)
        program.expect("released")

    def loses_share(self, program):
        program.say("unshare", self.lock, program.limit)
        line = " ".join(program.hear())
        require(line in ("lost", "not-held"), "it says %s to the release of a lost share" % line)

    def share(self, name):
        """What stands for one that shares: token, ends, count, lease."""
        value = self.holders().get(name)
        found = re.fullmatch(r"(\d+) (\d+) (\d+) (\d+\+?)( .*)?", value or "")
        require(found, "the field of %s is %s" % (name, value))
        return found.groups()[:4]

    def require_table(self):
        """`shared` has the ends of those who hold, and the TTL is that of the last."""
        holders = self.holders()
        table, now = holders.pop("shared", "").split(), self.now_ms()
        counted = {int(ends): int(count) for ends, count in zip(table[::2], table[1::2]) if int(ends) > now}
        held = {}
        for value in holders.values():
            ends = int(value.split()[1])
            if ends > now:
                held[ends] = held.get(ends, 0) + 1
        require(held and counted == held, "shared is %s, of %s" % (counted, held))
        over = self.now_ms() + self.call("PTTL", self.lock) - max(held)
        require(-1000 < over < 1000, "the TTL is off by %d ms" % over)

    def others_share(self, count=1, ttl=60000):
        """Others share, as a script of this format would have written it."""
        ends = self.now_ms() + ttl
        fields = ["shared", "%d %d" % (ends, count)]
        for number in range(count):
            token = self.now_us()
            fields += ["sharer:%d" % (number + 1), "%d %d 1 %d" % (token, ends, ttl)]
        self.call("HSET", self.notes, "token", token, "holder", "sharer:%d" % count, "limit", "2 %d" % ends)
        self.call("PEXPIRE", self.notes, 3 * DAY)
        self.call("HSET", self.lock, *fields)
        self.call("PEXPIRE", self.lock, ttl)

    def told(self, program, text):
        require(self.call("PUBLISH", self.channel(program.id), text) == 1, "the waiter does not listen")

    def asks_when_told(self, text):
        """A program that waits takes the free lock when it is told this."""
        program = self.program()
        self.others_hold()
        self.waits(program)
        self.call("DEL", self.lock)
        self.told(program, text)
        program.expect("held")


# Keys, ids, tokens.

@check
def hold(stage):
    """The lock hash has one field, the holder's id, and the hold count 1."""
    program = stage.program()
    stage.holds(program)
    require(stage.holders() == {program.id: "1"}, "the lock hash is %s" % stage.holders())


@check
def lease(stage):
    """The lock hash's TTL is the lease."""
    stage.holds(stage.program(), 20000)
    ttl = stage.call("PTTL", stage.lock)
    require(10000 < ttl <= 20000, "the TTL is %d" % ttl)


@check
def ids(stage):
    """An id contains a colon and no space, has 255 bytes at most, and no two clients have the same."""
    first, second = stage.program().id, stage.program().id
    good = ":" in first and len(first.encode()) <= 255 and first != second
    require(good, "ids %s and %s" % (first, second))


@check
def braces(stage):
    """The other keys of a lock whose name contains a brace have no braces of their own."""
    stage.__init__(stage.port, stage.words, "{rack}" + stage.lock)
    stage.others_hold()
    stage.waits(stage.program())
    require(stage.call("LLEN", stage.queue) == 1, "it is not in %s" % stage.queue)


@check
def any_name(stage):
    """A name is any bytes."""
    stage.__init__(stage.port, stage.words, stage.lock + ':*[ü]?"\\%s\'')
    program = stage.program()
    stage.holds(program)
    waiter = stage.waiter()
    stage.releases(program)
    waiter.hears_grant()


@check
def name_in_braces(stage):
    """{x} is no name: its queue would be that of x, and its hash another."""
    name = "{%s}" % stage.lock
    program = lab.Program(stage.words, stage.port, PATIENT, 30000)
    stage.programs.append(program)
    program.say("acquire", name, 0, 20000)
    program.expect("error")
    require(stage.call("EXISTS", name) == 0, "it holds it")
    stage.holds(program)


@check
def token_of_time(stage):
    """Without an earlier one, a token is the server's time in microseconds."""
    before = stage.now_us()
    token = stage.holds(stage.program())
    require(before <= token <= stage.now_us(), "the token is %d" % token)


@check
def token_after_last(stage):
    """A token is one more than the last, where that is larger than the time."""
    last = stage.now_us() + 10 ** 12
    stage.call("HSET", stage.notes, "token", last)
    token = stage.holds(stage.program())
    require(token == last + 1, "%d follows %d" % (token, last))


@check
def token_below_2_53(stage):
    """A last token of 2^53 or more does not count."""
    stage.call("HSET", stage.notes, "token", 2 ** 53)
    token = stage.holds(stage.program())
    require(token < 2 ** 53 - 1, "the token is %d" % token)


@check
def token_noted(stage):
    """`token` and `holder` are those of the last hold."""
    program = stage.program()
    token = stage.holds(program)
    noted = stage.note("token"), stage.note("holder")
    require(noted == (str(token), program.id), "token and holder are %s" % (noted,))


@check
def lease_noted(stage):
    """A lease that is noted with the token of the hold is the one it has, with a + if it is renewed."""
    program = stage.program(lease_ms=40000)
    for lease, words in (20000, "20000"), (0, "40000+"):
        token = stage.holds(program, lease)
        noted = (stage.note("lease") or "").split(" ")
        require(noted[0] != str(token) or noted[1:2] in ([], [words]), "the lease is %s" % noted)
        stage.releases(program)


@check
def release_noted(stage):
    """A release removes the lock hash, and `released` is its token."""
    program = stage.program()
    token = stage.holds(program)
    stage.releases(program)
    require(stage.holders() == {}, "the lock hash stays")
    require(stage.note("released") == str(token), "released is %s" % stage.note("released"))


@check
def given_up(stage):
    """A hold that comes back with a token that was released before is not taken again."""
    program = stage.program()
    token = stage.holds(program)
    stage.releases(program)
    stage.call("HSET", stage.lock, program.id, 1)
    stage.call("PEXPIRE", stage.lock, 20000)
    require(stage.holds(program) > token, "it is held with the old token")


@check
def notes_stay(stage):
    """After a grant, the notes' TTL is the lease and a day at least."""
    stage.holds(stage.program(), 20000)
    stage.ttl_at_least(stage.notes, DAY + 20000)


@check
def notes_of_waiters_stay(stage):
    """After a waiter's note, the notes' TTL is a day at least."""
    stage.others_hold()
    stage.call("DEL", stage.notes)
    stage.waits(stage.program())
    until(lambda: stage.call("PTTL", stage.notes) >= 0, "a TTL")
    stage.ttl_at_least(stage.notes, DAY)


@check
def notes_not_cut(stage):
    """No script makes the notes' TTL shorter than the lease and a day."""
    stage.call("HSET", stage.notes, "later", "yes")
    stage.call("PEXPIRE", stage.notes, 20 * DAY)
    program = stage.program()
    stage.holds(program, 20000)
    stage.ttl_at_least(stage.notes, DAY + 20000)
    stage.releases(program)
    stage.ttl_at_least(stage.notes, DAY)


@check
def later_fields_stay(stage):
    """A clean-up leaves fields without a colon alone."""
    stage.call("HSET", stage.notes, "token", 1000000, "later", "yes", "a:1", 1, "b:1", 1, "c:1", 1,
               "suspect:d:1", 1, "e:1", 1)
    program = stage.program()
    stage.holds(program)
    stage.releases(program)
    require(stage.note("later") == "yes", "the field is gone")


@check
def needs(stage):
    """Who neither holds nor waits, and knows no word of `needs`, changes nothing; others go on."""
    holder, waiter, newcomer = stage.program(), stage.program(), stage.program()
    stage.holds(holder)
    stage.waits(waiter)
    stage.call("HSET", stage.notes, "needs", "peers and more")

    def is_refused():
        before = stage.holders(), stage.line(), stage.call("HGETALL", stage.notes)
        for wait in 0, 20000:
            newcomer.say("acquire", stage.lock, wait, 20000)
            newcomer.expect("error")
        after = stage.holders(), stage.line(), stage.call("HGETALL", stage.notes)
        require(before == after, "it makes %s of %s" % (after, before))

    is_refused()
    stage.releases(holder)
    waiter.expect("held")
    until(lambda: stage.holders() == {waiter.id: "1"}, "a confirmation")
    is_refused()
    stage.releases(waiter)
    is_refused()
    require(stage.call("EXISTS", stage.lock) == 0, "somebody holds the lock")


@check
def wrong_type(stage):
    """Each key is read before any is written: one of a wrong type is an error that changes nothing."""
    stage.call("SET", stage.notes, "a string")
    program = stage.program()
    program.say("acquire", stage.lock, 0, 20000)
    program.expect("error")
    require(stage.call("EXISTS", stage.lock) == 0, "the lock hash was written")


# Queueing.

@check
def busy(stage):
    """A try for a lock that somebody holds changes nothing."""
    stage.others_hold()
    program = stage.program()
    stage.busy(program)
    require(stage.holders() == {"other:1": "1"} and stage.line() == [], "it changed something")


@check
def endless(stage):
    """A lock without a TTL is held until somebody ends that: it gets none, and nobody takes it."""
    stage.others_hold()
    stage.call("PERSIST", stage.lock)
    program = stage.program()
    stage.busy(program)
    stage.waits(program)
    require(stage.holders() == {"other:1": "1"}, "the lock hash is %s" % stage.holders())
    require(stage.call("PTTL", stage.lock) == -1, "it has a TTL")


@check
def queue(stage):
    """A waiter queues at the end; queue and scores have a TTL."""
    stage.others_hold()
    stage.waiter()
    program = stage.program()
    stage.waits(program)
    require(stage.line() == ["waiter:1", program.id], "the queue is %s" % stage.line())
    stage.ttl_at_least(stage.queue, DAY)
    stage.ttl_at_least(stage.timeout, DAY)


@check
def score(stage):
    """Its score is now, the lock's TTL, and the chain for each place, its own too."""
    stage.others_hold()
    stage.waiter()
    program = stage.program()
    stage.waits(program)
    stage.require_score(program.id, 2 * CHAIN)


@check
def score_kept(stage):
    """Its score is raised when it asks: to now and one chain for each place from 1."""
    stage.others_hold()
    program = stage.program()
    stage.waits(program)
    stage.call("ZADD", stage.timeout, "XX", stage.now_ms() - CHAIN, program.id)
    stage.call("HSET", stage.notes, program.id, "1700000000 0 %d" % PATIENT)  # our client looks then
    stage.told(program, "0")
    until(lambda: stage.score(program.id) > stage.now_ms() + CHAIN - 10000, "a score of one chain")


@check
def note(stage):
    """Its note is when it was heard, s and us, and its timeout of 4 to 9 digits."""
    stage.others_hold()
    program = stage.program(20000)
    stage.waits(program)
    text = stage.note(program.id)
    words = re.fullmatch(r"(\d+) (\d+) ([1-9]\d{3,5})( .*)?", text)
    require(words and int(words[3]) >= BRISK, "the note is '%s'" % text)
    require(abs(stage.heard_ms(program.id) - stage.now_ms()) < 15000, "heard at '%s'" % text)


def monitored(stage, act, word):
    """MONITOR's lines with this word while something is done, each in small letters."""
    monitor = lab.Redis(stage.port)
    monitor.call("MONITOR")
    act()
    stage.call("ECHO", "end of " + stage.lock)
    lines = []
    while True:
        line = monitor.stream.line().decode()
        if "end of " + stage.lock in line:
            return lines
        if word in line:
            lines.append(line.lower())


def require_rights(stage, act):
    """What is done uses no command in a script but those that a user has the rights for."""
    lines = monitored(stage, act, stage.lock)
    used = {found[1] for found in (re.search(r'\[\d+ lua\] "(\w+)"', line) for line in lines) if found}
    require(len(used) > 5 and not used - RIGHTS, "they use " + " ".join(sorted(used - RIGHTS)))


def commands_of(stage, program):
    """Those that name the program's id, until its note is there."""
    return monitored(stage, lambda: stage.waits(program), program.id)


def place_of(lines, pattern):
    return next((at for at, line in enumerate(lines) if re.search(pattern, line)), -1)


@check
def listens_first(stage):
    """It subscribes before it queues."""
    stage.others_hold()
    program = stage.program()
    lines = commands_of(stage, program)
    require(0 <= place_of(lines, r'\] "s?subscribe"') < place_of(lines, '"rpush"'), "it queues first")


@check
def note_last(stage):
    """It has its place and its score before its note says that it is alive."""
    stage.others_hold()
    program = stage.program()
    lines = commands_of(stage, program)
    scored = max(place_of(lines, '"rpush"'), place_of(lines, '"zadd" .*"[0-9]{13}'))
    noted = len(lines) - 1 - place_of(lines[::-1], '"hset"')  # for the last time
    require(0 < scored < noted, "the note is first")


@check
def heartbeat(stage):
    """It asks so often that one heartbeat of two may be lost."""
    stage.others_hold()
    program = stage.program(BRISK)
    stage.waits(program)
    times = [stage.heard_ms(program.id)]
    shortest = PATIENT
    while len(times) < 5 or shortest > BRISK / 2 and len(times) < 15:  # a busy machine makes some late
        until(lambda: stage.heard_ms(program.id) > times[-1], "another heartbeat")
        times.append(stage.heard_ms(program.id))
        shortest = min(after - before for before, after in zip(times, times[1:]))
    require(shortest <= BRISK / 2, "heartbeats every %d ms" % shortest)


@check
def leave(stage):
    """A wait that ends removes place, score and note together."""
    stage.others_hold()
    program = stage.program()
    waiter = stage.waiter("behind:1")
    stage.waits(program, 3000)
    program.expect("timeout")
    require(stage.line() == [waiter.id], "the queue is %s" % stage.line())
    require(stage.score(program.id) == 0 and stage.note(program.id) is None, "score or note stays")


def give_unheard(stage):
    """One that waits, for 4 s, is given the lock without a message. Returns its program."""
    stage.others_hold()
    program = stage.program()
    stage.waits(program, 4000)
    stage.give(program.id, count=0)
    return program


@check
def leave_ends_claim(stage):
    """A wait that ends gives back a claim that it has not heard of."""
    program = give_unheard(stage)
    if program.hear()[0] == "held":
        stage.releases(program)
    require(stage.holders() == {}, "the claim stays")


@check
def leave_hands_over(stage):
    """The end of such a claim hands the lock to the first in line."""
    program = give_unheard(stage)
    waiter = stage.waiter()
    if program.hear()[0] == "held":
        stage.releases(program)
    waiter.hears_grant()


# Messages.

def holds_by_message(stage, more):
    """A waiter is sent a grant, with these words behind it. Returns the token."""
    stage.others_hold()
    program = stage.program()
    stage.waits(program)
    token = stage.give(program.id, count=0, more=more)[0]
    require(program.expect("held") == [token], "it holds with another token")
    until(lambda: stage.holders() == {program.id: "1"}, "a confirmation")
    return token


@check
def grant(stage):
    """A grant by message: it holds, with that token, and confirms the claim to count 1."""
    token = holds_by_message(stage, "")
    require(stage.note("token") == token, "there is another token")


@check
def confirmation(stage):
    """The confirmation makes the TTL the lease, a shorter one too."""
    stage.others_hold()
    program = stage.program()
    stage.waits(program, lease=30000)
    stage.give(program.id, count=0, more="")
    program.expect("held")
    until(lambda: 0 < stage.call("PTTL", stage.lock) <= 30000, "a TTL of 30 s", 10)


@check
def grant_says_more(stage):
    """More words in a grant are passed over."""
    # One that only asks finds its claim, too: on the server that looks the same.
    holds_by_message(stage, " more words")


@check
def grant_lost(stage):
    """A claim whose message was lost is found by the next heartbeat, and confirmed."""
    stage.others_hold()
    program = stage.program(BRISK)
    stage.waits(program)
    token = stage.give(program.id, count=0)[0]
    require(program.expect("held") == [token], "it holds with another token")
    until(lambda: stage.holders() == {program.id: "1"}, "a confirmation")


@check
def grant_late(stage):
    """A grant that comes again after the release begins nothing."""
    stage.others_hold()
    program = stage.program()
    stage.waits(program)
    _, message = stage.give(program.id, count=0, more="")
    program.expect("held")
    stage.releases(program)
    stage.others_hold()
    stage.call("PUBLISH", stage.channel(program.id), message)
    program.say("acquire", stage.lock, 4000, 20000)
    until(lambda: stage.note(program.id), "a note")
    stage.call("PUBLISH", stage.channel(program.id), message)
    program.expect("timeout")
    require(stage.holders() == {"other:1": "1"}, "the lock hash is %s" % stage.holders())


@check
def grant_false(stage):
    """A grant without a claim takes nothing from the holder."""
    stage.others_hold()
    program = stage.program()
    stage.waits(program, 4000)
    stage.told(program, "%d %d 20000" % (stage.now_us(), stage.now_ms()))
    if program.hear()[0] == "held":
        stage.loses(program)
    require(stage.holders() == {"other:1": "1"}, "the lock hash is %s" % stage.holders())


@check
def ask_zero(stage):
    """A waiter that is told "0" asks at once."""
    stage.asks_when_told("0")


@check
def ask_unknown(stage):
    """So does one that is told what it does not know."""
    stage.asks_when_told("news")


@check
def ask_token(stage):
    """So does one that is told a token: that asks a holder to release."""
    stage.asks_when_told("1700000000000000")


@check
def ask_token_says_more(stage):
    """And one that is told who asks that holder, and why."""
    stage.asks_when_told("1700000000000000 anna@ops-1 stuck on NFS")


@check
def ask_empty(stage):
    """So does one that is told nothing, by an empty message."""
    stage.asks_when_told("")


@check
def ask_half(stage):
    """So does one that is told what begins as a grant does."""
    stage.asks_when_told("1700000000000000 1700000000000 x5000")


@check
def ask_long(stage):
    """So does one that is told more than it expected."""
    stage.asks_when_told("news " * 4000)


@check
def holder_is_deaf(stage):
    """A holder ignores all messages but its own token; that of another hold, too."""
    stage.others_hold()
    program = stage.program()
    stage.waits(program)
    stage.give(program.id, count=0, more="")
    token = int(program.expect("held")[0])
    until(lambda: stage.holders() == {program.id: "1"}, "a confirmation")
    for text in ("0", "0 anna@ops-1 why", "news", "", "%d %d 20000" % (stage.now_us(), stage.now_ms()),
                 str(token - 1)):
        stage.call("PUBLISH", stage.channel(program.id), text)
    stage.has_turned(program)
    require(stage.holders() == {program.id: "1"}, "the lock hash is %s" % stage.holders())
    stage.releases(program)


@check
def holder_is_asked(stage):
    """A holder that is told its token, and who asks and why, decides: it goes on, or releases."""
    stage.others_hold()
    program = stage.program()
    stage.waits(program)
    token = stage.give(program.id, count=0, more="")[0]
    program.expect("held")
    until(lambda: stage.holders() == {program.id: "1"}, "a confirmation")
    for more in "", " anna@ops-1 stuck on NFS":
        stage.call("PUBLISH", stage.channel(program.id), token + more)
    stage.has_turned(program)
    if stage.holders() == {program.id: "1"}:
        stage.releases(program)
    require(stage.holders() == {} and stage.note("released") == token, "the hold ends otherwise than by a release")


# Handing over.

@check
def handover(stage):
    """A release hands the lock to the first waiter: count 0, its timeout, a token, a message."""
    program = stage.program()
    token = stage.holds(program)
    waiter = stage.waiter(timeout=20000)
    stage.releases(program)
    grant = waiter.hears_grant()
    require(stage.holders() == {waiter.id: "0"}, "the lock hash is %s" % stage.holders())
    ttl = stage.call("PTTL", stage.lock)
    require(10000 < ttl <= 20000 and grant[3] == "20000", "the claim is %d ms, or %s" % (ttl, grant[3]))
    noted = stage.note("token"), stage.note("holder")
    require(noted == (grant[1], waiter.id) and int(grant[1]) > token, "the notes say %s" % (noted,))
    require(abs(int(grant[2]) - stage.now_ms()) < 15000, "the grant is of %s" % grant[2])


@check
def claim_named(stage):
    """A waiter whose note names a claim is handed the lock for that long."""
    program = stage.program()
    stage.holds(program)
    waiter = stage.waiter(timeout=60000, more=" C20000")
    stage.releases(program)
    grant = waiter.hears_grant()
    ttl = stage.call("PTTL", stage.lock)
    require(10000 < ttl <= 20000 and grant[3] == "20000", "the claim is %d ms, or %s" % (ttl, grant[3]))


@check
def claim_tells_next(stage):
    """Who becomes the first in line, and names a claim, is told to ask."""
    program = stage.program()
    stage.holds(program)
    waiter, after = stage.waiter(), stage.waiter("waiter:2", more=" C20000")
    stage.releases(program)
    waiter.hears_grant()
    message = after.hears()
    require(message == "0", "the next in line is told '%s'" % message)


@check
def handover_removes(stage):
    """Who is handed the lock loses place, score and note together."""
    program = stage.program()
    stage.holds(program)
    waiter = stage.waiter()
    stage.releases(program)
    waiter.hears_grant()
    waiter.gone()


@check
def handover_notes_release(stage):
    """`released` is set by a release that hands over, too."""
    program = stage.program()
    token = stage.holds(program)
    stage.waiter()
    stage.releases(program)
    require(stage.note("released") == str(token), "released is %s" % stage.note("released"))


@check
def handover_scores_next(stage):
    """The next in line gets a score of now, the claim, the chain and 100 ms."""
    program = stage.program()
    stage.holds(program)
    waiter, after = stage.waiter(timeout=20000), stage.waiter("waiter:2")
    stage.call("ZADD", stage.timeout, "XX", 9 * 10 ** 12, after.id)
    stage.releases(program)
    waiter.hears_grant()
    stage.require_score(after.id, CHAIN + 100)


@check
def order(stage):
    """The first in line is served first, whoever it is."""
    first, second = stage.program(), stage.program()
    stage.holds(first)
    waiter = stage.waiter()
    stage.waits(second)
    last = stage.waiter("waiter:2")
    stage.releases(first)
    waiter.hears_grant()
    require(second.silent(0.2), "the second in line was served, too")
    stage.give(second.id, count=0, more="")
    second.expect("held")
    stage.releases(second)
    last.hears_grant()


@check
def no_overtaking(stage):
    """Who finds the lock free hands it to the first in line, and queues behind."""
    waiter = stage.waiter()
    program = stage.program()
    stage.waits(program)
    waiter.hears_grant()
    require(stage.holders() == {waiter.id: "0"}, "the lock hash is %s" % stage.holders())
    require(stage.line() == [program.id], "the queue is %s" % stage.line())


@check
def try_does_not_overtake(stage):
    """So does one that only tries."""
    waiter = stage.waiter()
    stage.busy(stage.program())
    waiter.hears_grant()


@check
def claim_runs_out(stage):
    """A claim that is not confirmed ends, and the next heartbeat takes the lock."""
    first, second = stage.program(), stage.program(BRISK)
    stage.holds(first)
    waiter = stage.waiter(timeout=BRISK)
    stage.waits(second)
    stage.releases(first)
    waiter.hears_grant()
    second.expect("held", seconds=60)
    require(stage.holders() == {second.id: "1"}, "the lock hash is %s" % stage.holders())


@check
def longer_note(stage):
    """A waiter whose note says more is handed the lock."""
    program = stage.program()
    stage.holds(program)
    waiter = stage.waiter(more=" more words")
    stage.releases(program)
    waiter.hears_grant()


@check
def longest_timeout(stage):
    """A waiter whose timeout has nine digits is handed the lock, for that long."""
    program = stage.program()
    stage.holds(program)
    waiter = stage.waiter(timeout=999999999)
    stage.releases(program)
    waiter.hears_grant()


@check
def shard_channel(stage):
    """A waiter that listens by SSUBSCRIBE is handed the lock by SPUBLISH."""
    try:
        stage.call("PUBSUB", "SHARDNUMSUB")
    except lab.Refused:
        raise Skipped("this server has no shard channels") from None
    program = stage.program()
    stage.holds(program)
    waiter = stage.waiter(listens="SSUBSCRIBE")
    stage.releases(program)
    waiter.hears_grant()


@check
def dead(stage):
    """A waiter whose time has passed is removed: place, score and note."""
    waiter = stage.waiter(timeout=5000, ago=5100)
    program = stage.program()
    stage.holds(program)
    waiter.gone()


@check
def silent(stage):
    """A waiter that is alive and does not listen is passed over, and keeps its place."""
    waiter = stage.waiter(listens=None)
    stage.holds(stage.program())
    require(stage.line() == [waiter.id] and stage.note(waiter.id), "it lost its place")


@check
def unknown_note(stage):
    """A waiter whose note cannot be read is woken, keeps place and note, and is waited for."""
    program = stage.program()
    stage.holds(program)
    waiter = stage.unknown()
    stage.releases(program)
    require(waiter.hears() == "0", "it was told something else")
    stage.busy(program)
    require(stage.line() == [waiter.id] and stage.note(waiter.id), "it lost its place")


@check
def unknown_note_gone(stage):
    """If it does not come within 5 s, it is removed: place, score and note."""
    waiter = stage.unknown()
    program = stage.program(BRISK)
    stage.waits(program)
    require(waiter.hears() == "0", "it was told something else")
    program.expect("held", seconds=60)
    waiter.gone()


@check
def unknown_note_silent(stage):
    """If it does not listen, it is noted as a suspect, and waited for, 5 s."""
    waiter = stage.unknown(listens=None)
    began = stage.now_ms()
    program = stage.program(BRISK)
    stage.waits(program)
    require(stage.note("suspect:" + waiter.id), "no suspect is noted")
    program.expect("held", seconds=60)
    require(stage.now_ms() - began > 4500, "it was not waited for")
    waiter.gone()


@check
def redisson(stage):
    """A Redisson waiter is woken, and takes the lock itself; nobody overtakes it."""
    program = stage.program()
    stage.holds(program)
    waiter = stage.redisson()
    score = stage.call("ZSCORE", stage.timeout, waiter.id)
    stage.releases(program)
    require(waiter.hears() == "0", "it was told something else")
    require(stage.note("woken") == "%s %s" % (waiter.id, score), "woken is %s" % stage.note("woken"))
    require(abs(int(stage.note("since")) - stage.now_ms()) < 15000, "since is %s" % stage.note("since"))
    stage.waits(program)
    require(stage.holders() == {} and stage.line() == [waiter.id, program.id], "it was overtaken")


@check
def redisson_gone(stage):
    """A Redisson waiter that was woken 5 s ago, and has not come, is removed."""
    waiter = stage.redisson()
    program = stage.program(BRISK)
    stage.waits(program)
    program.expect("held", seconds=60)
    waiter.gone()


@check
def redisson_woken_anew(stage):
    """That it was woken more than 15 s ago does not count: scores come again."""
    waiter = stage.redisson()
    stage.woken(waiter, 20000)
    stage.busy(stage.program())
    require(waiter.hears() == "0" and stage.line() == [waiter.id], "it was removed")


@check
def redisson_turns_silent(stage):
    """One that was woken 5 s ago, and listens no longer, is removed: that starts no other 5 s."""
    program, waiter = stage.program(), stage.redisson(listens=None)
    stage.woken(waiter, 6000)
    stage.holds(program)
    waiter.gone()


@check
def redisson_woken_behind(stage):
    """That it was woken counts only at the head: one that is found behind has come meanwhile."""
    program, silent, waiter = stage.program(), stage.waiter(listens=None), stage.redisson()
    stage.woken(waiter, 6000)
    began = stage.now_ms()
    stage.busy(program)
    require(waiter.hears() == "0", "it was told something else")
    require(stage.line() == [waiter.id, silent.id], "the queue is %s" % stage.line())
    require(int(stage.note("since")) >= began, "since is %s" % stage.note("since"))


@check
def redisson_has_come(stage):
    """Who finds the lock held removes `woken`: who was woken has come."""
    stage.others_hold()
    stage.call("HSET", stage.notes, "woken", "redisson:1 1", "since", stage.now_ms())
    stage.waits(stage.program())
    require(stage.note("woken") is None, "woken stays")


@check
def redisson_silent(stage):
    """One that does not listen is noted as a suspect, and the lock waits for it, 5 s."""
    waiter = stage.redisson(listens=None)
    score = stage.call("ZSCORE", stage.timeout, waiter.id)
    began = stage.now_ms()
    program = stage.program(BRISK)
    stage.waits(program)
    words = (stage.note("suspect:" + waiter.id) or "- 0").split()
    require(words[0] == score and began <= int(words[1]) <= stage.now_ms(), "the suspect is %s" % words)
    program.expect("held", seconds=60)
    require(stage.now_ms() - began > 4500, "it was not waited for")
    waiter.gone()
    require(stage.note("suspect:" + waiter.id) is None, "the suspect stays")


@check
def redisson_all_silent(stage):
    """Several of them are noted at the same time, not one after the other."""
    waiters = [stage.redisson("redisson:%d" % number, listens=None) for number in (1, 2, 3)]
    dead = stage.waiter("dead:1", timeout=5000, ago=5100)
    program = stage.program()
    stage.busy(program)
    for waiter in waiters:
        require(stage.note("suspect:" + waiter.id), "%s is not noted" % waiter.id)
    dead.gone()


@check
def redisson_listens(stage):
    """One that was noted as a suspect, and listens now, is woken, and no suspect any more."""
    program = stage.program()
    stage.holds(program)
    waiter = stage.redisson()
    suspect = "suspect:" + waiter.id
    score = stage.call("ZSCORE", stage.timeout, waiter.id)
    stage.call("HSET", stage.notes, suspect, "%s %d" % (score, stage.now_ms()))
    stage.releases(program)
    require(waiter.hears() == "0" and stage.line() == [waiter.id], "it was told something else, or removed")
    require(stage.note(suspect) is None, "the suspect stays")


@check
def redisson_past(stage):
    """One that does not listen, and whose score has passed, is removed at once."""
    waiter = stage.redisson(listens=None, score=stage.now_ms() - 1)
    stage.holds(stage.program())
    waiter.gone()


@check
def redisson_to_the_front(stage):
    """A Redisson waiter is put before those who are passed over; they get one chain more."""
    program = stage.program()
    stage.holds(program)
    silent, waiter = stage.waiter(listens=None), stage.redisson()
    score = 9 * 10 ** 12
    stage.call("ZADD", stage.timeout, "XX", score, silent.id)
    stage.releases(program)
    require(waiter.hears() == "0", "it was told something else")
    require(stage.line() == [waiter.id, silent.id], "the queue is %s" % stage.line())
    require(stage.score(silent.id) == score + CHAIN, "the score is %d" % stage.score(silent.id))


# Holding.

@check
def renewal(stage):
    """A hold that is renewed outlasts its lease, and count and token stay."""
    program = stage.program(lease_ms=6000)
    token = stage.holds(program, 0)
    time.sleep(7)
    require(stage.holders() == {program.id: "1"}, "the lock hash is %s" % stage.holders())
    require(stage.note("token") == str(token), "there is another token")
    stage.ttl_at_least(stage.notes, DAY)


@check
def renewal_scores_first(stage):
    """A renewal sets the score of the first in line to now, the lease, the chain and 100 ms."""
    program = stage.program(lease_ms=6000)
    stage.holds(program, 0)
    stage.require_renewal_scores()


@check
def renewal_keeps_longer(stage):
    """A renewal makes a TTL that is longer than the lease no shorter."""
    program = stage.program(lease_ms=6000)
    stage.holds(program, 0)
    stage.call("PEXPIRE", stage.lock, 600000)
    waiter, far = stage.waiter(), 9 * 10 ** 12
    stage.call("ZADD", stage.timeout, "XX", far, waiter.id)
    until(lambda: stage.score(waiter.id) < far, "a renewal")
    stage.ttl_at_least(stage.lock, 600000)


@check
def lost_hold(stage):
    """A hold that somebody else has taken is not taken back, and its release says so."""
    program = stage.program(lease_ms=1500)
    stage.holds(program, 0)
    stage.others_hold()
    time.sleep(1)  # it renews, and finds out, or does so by the release
    stage.loses(program)
    require(stage.holders() == {"other:1": "1"}, "the lock hash is %s" % stage.holders())


@check
def late_release(stage):
    """A release after the lease ends nobody else's hold, and is not noted as one."""
    program = stage.program()
    token = stage.holds(program, 500)
    until(lambda: not stage.holders(), "the end of the lease")
    stage.others_hold()
    stage.loses(program)
    require(stage.holders() == {"other:1": "1"}, "the lock hash is %s" % stage.holders())
    require(stage.note("released") != str(token), "it is noted as released")


@check
def release_of_another(stage):
    """A release of a hold says that it is lost if its id has one with another token by now."""
    program = stage.program()
    stage.holds(program)
    stage.give(program.id)
    stage.loses(program)  # a leave may follow, which ends whatever the id has


@check
def reentry(stage):
    """Re-entry counts to 2 with the same token, and the first release back to 1."""
    program = stage.program()
    token = stage.holds(program)
    program.say("acquire", stage.lock, 0, 20000)
    line = program.hear()
    if line == ["unsupported"]:
        raise Skipped("no re-entry")
    require(line == ["held", str(token)] and stage.holders() == {program.id: "2"}, "it is %s" % line)
    stage.releases(program)
    require(stage.holders() == {program.id: "1"}, "the lock hash is %s" % stage.holders())
    stage.releases(program)
    require(stage.holders() == {}, "the lock hash is %s" % stage.holders())


@check
def reentry_keeps_longer(stage):
    """A re-entry with a shorter lease, and its release, make the TTL no shorter."""
    program = stage.program()
    stage.holds(program, 600000)
    program.say("acquire", stage.lock, 0, 20000)
    if program.hear() == ["unsupported"]:
        raise Skipped("no re-entry")
    stage.ttl_at_least(stage.lock, 600000)
    stage.releases(program)
    stage.ttl_at_least(stage.lock, 600000)


# Beside those who share, for clients that know nothing of it, too.

@check
def shared_is_held(stage):
    """A lock that others share is held: a try leaves it as it is."""
    stage.others_share(2)
    before = stage.holders()
    stage.busy(stage.program())
    require(stage.holders() == before, "the lock hash is %s" % stage.holders())


@check
def shared_ends(stage):
    """Who waits for it gets it when the last lease has ended, and then has it alone."""
    program = stage.program(BRISK)
    stage.others_share(2)
    stage.waits(program)
    stage.call("PEXPIRE", stage.lock, 500)
    program.expect("held", seconds=60)
    require(stage.holders() == {program.id: "1"}, "the lock hash is %s" % stage.holders())


@check
def shared_waiter(stage):
    """One that waits to share is handed the free lock: alone, or as a share, with those behind it."""
    program = stage.program()
    stage.holds(program)
    waiter = stage.waiter(more=" S2")
    behind = stage.waiter("waiter:2", more=" S2")
    stage.releases(program)
    grant = waiter.hears_grant()
    held, line = stage.holders(), stage.line()
    waiter.gone()
    if held == {waiter.id: "0"}:
        require(line == [behind.id], "the queue is %s" % line)
    else:
        require(held.get(waiter.id, "").split(" ")[0] == grant[1] and "shared" in held, "the lock hash is %s" % held)
        require((behind.id in held) == (line == []), "the queue is %s, the lock hash %s" % (line, held))


# Sharing.

@check
def share_fields(stage):
    """A field for each who shares, a table of their ends, the newest token, and the limit."""
    first, second = stage.sharer(), stage.sharer()
    tokens = stage.shares(first), stage.shares(second)
    require(tokens[1] > tokens[0], "tokens are %s" % (tokens,))
    for program, token in zip((first, second), tokens):
        field = stage.share(program.id)
        require(field[0] == str(token) and field[2:] == ("1", "20000"), "it is %s" % (field,))
        require(0 <= int(field[1]) - stage.now_ms() - 20000 + 5000 <= 6250, "it ends at %s" % field[1])
    noted = stage.note("token"), stage.note("holder")
    require(noted == (str(tokens[1]), second.id), "token and holder are %s" % (noted,))
    require((stage.note("limit") or "").startswith("2 "), "limit is %s" % stage.note("limit"))
    stage.require_table()
    stage.ttl_at_least(stage.notes, DAY + 20000)


@check
def share_one_leaves(stage):
    """Who leaves is taken out of the table; the last one frees the lock."""
    first, second = stage.sharer(), stage.sharer()
    token = stage.shares(first, 40000)
    stage.shares(second)
    stage.unshares(first)
    require(set(stage.holders()) == {second.id, "shared"}, "the lock hash is %s" % stage.holders())
    require(stage.note("released") == str(token), "released is %s" % stage.note("released"))
    stage.require_table()
    stage.unshares(second)
    require(stage.holders() == {}, "something is left")


@check
def share_limit(stage):
    """As many as may: one more is busy."""
    stage.others_share(2)
    stage.does_not_share(stage.sharer())
    require(len(stage.holders()) == 3 and stage.line() == [], "it changed something")


@check
def share_limit_of_others(stage):
    """The smallest limit in use binds: who names a larger one is busy, and so is who names a smaller one."""
    stage.others_share(2)
    stage.does_not_share(stage.sharer(3))
    stage.does_not_share(stage.sharer(0))
    stage.call("HSET", stage.notes, "limit", "5 %s" % stage.note("limit").split()[1])
    stage.does_not_share(stage.sharer(1))
    require(len(stage.holders()) == 3 and stage.line() == [], "it changed something")


@check
def share_limit_named(stage):
    """Who enters names its limit beside those of others, the smallest first, and is not refused for it."""
    stage.others_share(1)
    ends = stage.note("limit").split()[1]
    stage.call("HSET", stage.notes, "limit", "4 %s 30 1000 500 %s" % (ends, ends))
    program = stage.sharer(30)
    stage.shares(program)
    named = stage.note("limit").split()
    require(named[::2] == ["4", "30", "500"] and named[1] == named[5] == ends, "limit is %s" % named)
    require(int(named[3]) >= int(stage.share(program.id)[1]), "limit is %s" % named)


@check
def share_limit_of_who_is_let_in(stage):
    """Who leaves lets in by all limits in use, those included of whom it has just let in, and names theirs."""
    stage.others_share(1)
    stage.call("HSET", stage.notes, "limit", "5 %s" % stage.note("limit").split()[1])
    program = stage.sharer(5)
    stage.shares(program)
    others = [stage.sharer(5), stage.sharer(5)]
    for other in others:
        stage.shares(other)
    stage.call("HSET", stage.notes, "limit", "4 %d" % (stage.now_ms() + 60000))
    first, second = stage.waiter(more=" S5"), stage.waiter("waiter:2", more=" S5")
    stage.unshares(program)
    grant = first.hears_grant()
    require(stage.line() == [second.id], "the queue is %s" % stage.line())
    named = stage.note("limit").split()
    require(named[::2] == ["4", "5"], "limit is %s" % named)
    require(int(named[3]) >= int(stage.share(first.id)[1]), "limit is %s, the claim %s" % (named, grant))


@check
def share_limit_of_a_waiter(stage):
    """Who leaves lets nobody in whose own limit, the S of its note, says that as many hold as may."""
    stage.others_share(2)
    stage.call("HSET", stage.notes, "limit", "5 %s" % stage.note("limit").split()[1])
    program = stage.sharer(5)
    stage.shares(program)
    waiter = stage.waiter(more=" S2")
    stage.unshares(program)
    require(stage.line() == [waiter.id] and waiter.id not in stage.holders(), "it is let in as the third of two")


@check
def share_limit_left(stage):
    """Where nobody else holds, a limit that is left does not bind, and who enters names its own alone."""
    stage.call("HSET", stage.notes, "token", stage.now_us(), "limit", "1 %d" % (stage.now_ms() + 60000))
    first, second = stage.sharer(2), stage.sharer(2)
    stage.shares(first)
    stage.shares(second)
    require(stage.note("limit").split()[::2] == ["2"], "limit is %s" % stage.note("limit"))


@check
def share_limit_of_nine_digits(stage):
    """A limit has up to 9 digits; one of 0, or of more, binds nobody."""
    stage.others_share(1)
    ends = stage.note("limit").split()[1]
    stage.call("HSET", stage.notes, "limit", "0 %s 123456789 %s 1234567890 %s" % (ends, ends, ends))
    program = stage.sharer(3)
    stage.shares(program)
    named = stage.note("limit").split()
    require(named[::2] == ["3", "123456789"] and named[3] == ends, "limit is %s" % named)


@check
def share_joins(stage):
    """Who finds others that share joins them, where one more may."""
    stage.others_share(1)
    program = stage.sharer()
    stage.shares(program)
    require(set(stage.holders()) == {"sharer:1", program.id, "shared"}, "it is %s" % stage.holders())
    stage.require_table()


@check
def share_not_beside_alone(stage):
    """Nobody shares beside one who has the lock alone."""
    stage.others_hold()
    stage.does_not_share(stage.sharer())
    require(stage.holders() == {"other:1": "1"}, "the lock hash is %s" % stage.holders())


@check
def share_note(stage):
    """The note of who waits to share has S and its limit as the fourth word; it names none besides."""
    stage.others_hold()
    program = stage.sharer()
    stage.waits_to_share(program)
    words = stage.note(program.id).split()
    require(words[3:4] == ["S2"], "the note is %s" % words)
    require(not stage.note("limit"), "limit is %s" % stage.note("limit"))


@check
def share_behind(stage):
    """Nobody overtakes one that waits for the lock alone."""
    stage.others_share(1)
    waiter = stage.waiter()
    stage.does_not_share(stage.sharer())
    require(stage.line() == [waiter.id], "the queue is %s" % stage.line())


@check
def share_lets_in(stage):
    """Who leaves lets in the first in line, with a claim, and not the one behind it."""
    stage.others_share(1)
    program = stage.sharer()
    stage.shares(program)
    first, second = stage.waiter(more=" S2"), stage.waiter("waiter:2", more=" S2")
    stage.call("ZADD", stage.timeout, "XX", 9 * 10 ** 12, second.id)
    stage.unshares(program)
    token, _, patience = first.hears_grant().groups()[:3]
    field = stage.share(first.id)
    require(field[0] == token and field[2] == "0", "its field is %s" % (field,))
    require(0 < int(field[1]) - stage.now_ms() <= int(patience) * 17 // 16, "it ends at %s" % field[1])
    first.gone()
    stage.require_table()
    require(stage.line() == [second.id], "the queue is %s" % stage.line())
    stage.require_score(second.id, CHAIN + 100)


@check
def share_of_a_claim(stage):
    """Who waited to share, and was handed the lock alone, makes it a share, and lets in the next."""
    stage.others_hold()
    program = stage.sharer()
    stage.waits_to_share(program)
    behind = stage.waiter(more=" S2")
    token = stage.give(program.id, count=0, more="")[0]
    require(program.expect("held") == [token], "it holds with another token")
    until(lambda: "shared" in stage.holders(), "a share")
    require(stage.share(program.id)[0] == token, "its field is %s" % (stage.share(program.id),))
    behind.hears_grant()
    stage.require_table()


@check
def share_ended(stage):
    """A share whose time has passed counts no more, though its field is still there."""
    stage.others_share(2)
    now = stage.now_ms()
    stage.call("HSET", stage.lock, "sharer:1", "5 %d 1 1000" % (now - 1),
               "shared", "%d 1 %d 1" % (now - 1, now + 60000))
    stage.shares(stage.sharer())


@check
def share_claim_named(stage):
    """One that shares, and whose note names a claim, is let in for that long."""
    stage.others_share(1)
    program = stage.sharer()
    stage.shares(program)
    waiter = stage.waiter(timeout=60000, more=" S2 C20000")
    stage.unshares(program)
    grant = waiter.hears_grant()
    left = int(stage.share(waiter.id)[1]) - stage.now_ms()
    require(grant[3] == "20000" and left <= 21250, "the claim is %s, or %d ms" % (grant[3], left))


@check
def share_renewal(stage):
    """A renewal sets the end in the field, in the table and in the limit, and the token stays."""
    program = stage.sharer(lease_ms=6000)
    token = stage.shares(program, 0)
    before = stage.share(program.id)
    require(before[3] == "6000+", "the lease is %s" % before[3])
    until(lambda: stage.share(program.id)[1] > before[1], "a renewal")
    token_now, ends = stage.share(program.id)[:2]
    require(token_now == str(token), "it has another token")
    named = (stage.note("limit") or "").split()
    require(len(named) == 2 and int(named[1]) >= int(ends), "limit is %s" % named)
    stage.require_table()


@check
def share_renewal_scores_first(stage):
    """It sets the score of the first in line to now, the lock's TTL, the chain and 100 ms."""
    program = stage.sharer(lease_ms=6000)
    stage.shares(program, 0)
    stage.require_renewal_scores()


@check
def share_clean_up(stage):
    """Who lets somebody in deletes fields that are no holds, if they are many."""
    stage.others_share(1)
    for number in range(40):
        stage.call("HSET", stage.lock, "gone:%d" % number, "5 %d 1 1000" % (stage.now_ms() - 1))
    program = stage.sharer()
    stage.shares(program)
    require(set(stage.holders()) == {"sharer:1", program.id, "shared"}, "it is %s" % stage.holders())
    stage.require_table()


@check
def share_grant(stage):
    """A share with count 0, whose message was lost, is found by the next heartbeat, and confirmed."""
    stage.others_hold()
    program = stage.sharer(waiter_ms=BRISK)
    stage.waits_to_share(program)
    token = stage.lets_in(program)
    require(program.expect("held") == [str(token)], "it holds with another token")
    until(lambda: stage.share(program.id)[2:] == ("1", "20000"), "a confirmation")
    require(int(stage.share(program.id)[1]) <= stage.now_ms() + 21250, "the claim is not made shorter")
    stage.require_table()


def let_in_unheard(stage):
    """One that waits to share, for 4 s, is let in without a message. Returns its program."""
    stage.others_hold()
    program = stage.sharer()
    program.say("share", stage.lock, program.limit, 4000, 20000)
    until(lambda: stage.note(program.id), "a note of %s" % program.id)
    stage.lets_in(program)
    return program


@check
def share_leave_ends_claim(stage):
    """A wait that ends gives back a share that it has not heard of."""
    program = let_in_unheard(stage)
    if program.hear()[0] == "held":
        stage.unshares(program)
    require(stage.holders() == {}, "the claim stays")


@check
def share_leave_hands_over(stage):
    """The end of such a share hands the lock to the first in line."""
    program = let_in_unheard(stage)
    waiter = stage.waiter()
    if program.hear()[0] == "held":
        stage.unshares(program)
    waiter.hears_grant()


@check
def share_says_more(stage):
    """The field of one that shares, and the note of one that waits to, may say more: both count."""
    stage.others_share(1)
    field = stage.holders()["sharer:1"] + " more words"
    stage.call("HSET", stage.lock, "sharer:1", field)
    program = stage.sharer()
    stage.shares(program)
    stage.does_not_share(stage.sharer())
    waiter = stage.waiter(more=" S2 more words")
    stage.unshares(program)
    waiter.hears_grant()
    require(stage.share(waiter.id)[2] == "0", "it is not let in")
    require(stage.holders().get("sharer:1") == field, "the other's field is %s" % stage.holders())


@check
def share_silent(stage):
    """A waiter that is alive and does not listen stops nobody who shares, and keeps its place."""
    stage.others_share(1)
    waiter = stage.waiter(listens=None)
    stage.shares(stage.sharer())
    require(stage.line() == [waiter.id] and stage.note(waiter.id), "it lost its place")


@check
def share_dead(stage):
    """A dead waiter stops nobody who shares, and is removed."""
    stage.others_share(1)
    waiter = stage.waiter(timeout=5000, ago=5100)
    stage.shares(stage.sharer())
    waiter.gone()


@check
def share_redisson(stage):
    """Nobody shares before a Redisson waiter that listens. It cannot have the lock yet."""
    stage.others_share(1)
    waiter = stage.redisson()
    stage.does_not_share(stage.sharer())
    require(stage.line() == [waiter.id] and stage.note("woken") is None, "it was removed, or counts as woken")


@check
def share_redisson_silent(stage):
    """One that does not listen is noted as a suspect, and stops those behind it for 5 s."""
    stage.others_share(1)
    waiter, program, began = stage.redisson(listens=None), stage.sharer(), stage.now_ms()
    score = stage.call("ZSCORE", stage.timeout, waiter.id)
    stage.does_not_share(program)
    noted = (stage.note("suspect:" + waiter.id) or "- 0").split()
    require(noted[0] == score and began <= int(noted[1]) <= stage.now_ms(), "the suspect is %s" % noted)
    stage.call("HSET", stage.notes, "suspect:" + waiter.id, "%s %d" % (score, stage.now_ms() - 6000))
    stage.shares(program)
    waiter.gone()


@check
def share_hands_over(stage):
    """The last one that leaves hands the lock over to one that wants it alone."""
    program = stage.sharer()
    token = stage.shares(program)
    waiter = stage.waiter()
    stage.unshares(program)
    waiter.hears_grant()
    require(stage.holders() == {waiter.id: "0"}, "the lock hash is %s" % stage.holders())
    require(stage.note("released") == str(token), "released is %s" % stage.note("released"))


@check
def share_far(stage):
    """What ends in 2000000000 ms, or later, is no share, and no limit."""
    stage.others_share(1)
    far = stage.now_ms() + 2000060000
    stage.call("HSET", stage.lock, "far:1", "5 %d 1 1000" % far,
               "shared", "%s %d 1" % (stage.holders()["shared"], far))
    stage.call("HSET", stage.notes, "limit", "1 %d" % far)
    stage.shares(stage.sharer())


@check
def share_given_up(stage):
    """A share that comes back with a token that was released before is not taken again."""
    program = stage.sharer()
    token = stage.shares(program)
    stage.unshares(program)
    ends = stage.now_ms() + 60000
    stage.call("HSET", stage.lock, program.id, "%d %d 1 20000" % (token, ends), "shared", "%d 1" % ends)
    stage.call("PEXPIRE", stage.lock, 60000)
    require(stage.shares(program) > token, "it is held with the old token")
    stage.require_table()


@check
def share_late_release(stage):
    """A release after the lease ends nobody's share, and is not noted as one."""
    stage.others_share(1)
    program = stage.sharer()
    token = stage.shares(program, 500)
    until(lambda: int(stage.share(program.id)[1]) < stage.now_ms(), "the end of the lease")
    stage.loses_share(program)
    require("sharer:1" in stage.holders(), "the lock hash is %s" % stage.holders())
    require(stage.note("released") != str(token), "it is noted as released")


@check
def share_release_of_another(stage):
    """So does the release of a share."""
    program = stage.sharer()
    stage.shares(program)
    stage.lets_in(program)
    stage.loses_share(program)


@check
def share_reentry_keeps_longer(stage):
    """A re-entry with a shorter lease, and its release, make no share end sooner."""
    program = stage.sharer()
    stage.shares(program, 600000)
    ends = stage.share(program.id)[1]
    program.say("share", stage.lock, program.limit, 0, 20000)
    if program.hear() == ["unsupported"]:
        raise Skipped("no re-entry")
    stage.unshares(program)
    require(stage.share(program.id)[1] >= ends, "it ends at %s, not %s" % (stage.share(program.id)[1], ends))
    stage.require_table()


@check
def share_rights(stage):
    """To share takes no other rights."""
    first, second = stage.sharer(1), stage.sharer(1)

    def take_turns():
        stage.shares(first)
        stage.waits_to_share(second)
        stage.unshares(first)
        second.expect("held")
        waiter = stage.waiter()
        stage.unshares(second)
        waiter.hears_grant()

    require_rights(stage, take_turns)


# What a client need not have.

def forces(stage, program, expected="forced"):
    program.say("force", stage.lock)
    line = program.hear()
    if line == ["unsupported"]:
        raise Skipped("no force")
    require(line[0] == expected, "it says " + " ".join(line))


@check
def force(stage):
    """A forced release ends anybody's hold, hands over, and does not set `released`."""
    token = stage.others_hold()
    waiter = stage.waiter()
    program = stage.program()
    forces(stage, program)
    waiter.hears_grant()
    require(stage.note("released") != token, "released is %s" % token)


@check
def force_needs(stage):
    """Who knows no word of `needs` ends nobody's hold."""
    stage.others_hold()
    stage.call("HSET", stage.notes, "needs", "peers and more")
    forces(stage, stage.program(), "error")
    require(stage.holders() == {"other:1": "1"}, "the lock hash is %s" % stage.holders())


@check
def rights(stage):
    """Its scripts use no command but those that a user has the rights for."""
    first, second, third = stage.program(), stage.program(), stage.program()

    def take_turns():
        stage.holds(first)
        stage.waits(second)
        stage.busy(third)
        stage.releases(first)
        second.expect("held")
        waiters = stage.redisson(), stage.waiter()
        stage.releases(second)
        waiters[0].hears()
        stage.busy(first)

    require_rights(stage, take_turns)


@check
def inspection(stage):
    """An inspection calls a waiter whose note cannot be read unknown, not dead."""
    stage.others_hold()
    stage.waiter("longer:1", more=" more words")
    stage.waiter("dead:1", timeout=5000, ago=5100)
    stage.unknown()
    stage.redisson()
    program = stage.program()
    program.say("inspect", stage.lock)
    line = program.hear()
    if line == ["unsupported"]:
        raise Skipped("no inspection")
    require(line == ["waiters", "alive", "dead", "unknown", "alive"], "it says " + " ".join(line))


# Connections that break, and what does not come in time.

class Turns:
    """A program that goes through what a client does, while the connection breaks at one request. A
    late request arrives when the operation that follows has ended, or its waiter has queued; after
    that the program still has what it was told that it has. A program that says "error" is told the
    line again."""

    def __init__(self, stage, shares, fate="", at=0):
        self.stage, self.call = stage, stage.call
        self.proxy = stage.proxy()
        self.proxy.fate, self.proxy.at = fate, at
        self.verbs = ("share", "unshare", " 2") if shares else ("acquire", "release", "")
        self.program = stage.program(3000, 6000, self.proxy.port)
        self.broke = False  # in an operation that has ended
        self.token = self.place = None

    def say(self, *numbers):
        verb = self.verbs[0 if numbers else 1]
        self.line = "%s %s%s %s" % (verb, self.stage.lock, self.verbs[2], " ".join(map(str, numbers)))
        self.program.say(self.line.strip())

    def hear(self, *expected):
        """Its answer, which begins with one of these; returns the rest."""
        for _ in range(5):
            answer = self.program.hear(30)
            if answer[0] != "error":
                break
            expected += ("lost", "not-held") if "released" in expected else ()
            self.program.say(self.line.strip())
        require(answer[0] in expected, "%s: it answers %s" % (self.line, " ".join(answer)))
        return answer

    def turn(self, *numbers, hears, count=None):
        """Tells it a line, and hears the answer. If it holds after that, this often, count says so."""
        self.say(*numbers)
        answer = self.hear(*hears)
        if answer[0] == "held":
            self.token = answer[1]
        elif not count:
            self.token = None
        if count and answer[0] != "unsupported":
            fields = [value.split() for holder, value in self.stage.holders().items() if holder != "shared"]
            counts = [words[2] if len(words) > 2 else words[0] for words in fields]
            require(counts == [count], "%s: the counts are %s" % (self.line, counts))
        self.ends()
        return answer[0]

    def ends(self):
        """An operation has ended. If a late request is of one before, it arrives now."""
        if self.broke:
            if self.proxy.deliver():
                self.require_what_it_has("after a late request")
        elif self.proxy.has_broken.is_set():
            self.broke = True
            self.require_what_it_has("after a break")

    def require_what_it_has(self, when):
        stage = self.stage
        if self.place:
            require(self.place in stage.line(), "its place is lost " + when)
        if self.token:
            holders, newest = stage.holders(), (stage.note("token"), stage.note("holder"))
            has = any(value.startswith(self.token + " ") or (self.token, holder) == newest
                      for holder, value in holders.items())
            require(has, "its hold with the token %s has ended %s: %s" % (self.token, when, holders))

    def heard_since(self, time_ms):
        return [name for name in self.stage.line() if self.stage.heard_ms(name) >= time_ms]

    def has_waited(self):
        """While others hold it queues, and leaves."""
        self.stage.others_hold()
        self.turn(600, 3000, hears=("timeout",))

    def go(self):
        self.turn(0, 20000, hears=("held",))
        if self.turn(0, 20000, hears=("held", "unsupported"), count="2") == "held":
            self.turn(hears=("released",), count="1")
        self.turn(hears=("released",))
        self.stage.others_hold()
        self.turn(0, 3000, hears=("busy",))
        self.has_waited()
        self.call("DEL", self.stage.lock)
        self.turn(0, 20000, hears=("held",))
        self.turn(hears=("released",))
        self.has_waited()
        now = self.stage.now_us() / 1000
        self.say(60000, 0)
        self.place = until(lambda: self.heard_since(now), "a place")[0]
        self.ends()
        self.stage.give(self.place, count=0, more="")
        self.place, self.token = None, self.hear("held")[1]
        self.ends()
        for comes in (lambda left: left < 5500), (lambda left: left > 5500):
            until(lambda: comes(self.call("PTTL", self.stage.lock)), "a confirmation, and a renewal")
        self.ends()
        self.turn(hears=("released",))
        self.turn(0, 3000, hears=("held",))
        self.turn(hears=("released",))
        self.ends()
        until(lambda: not self.stage.holders(), "the end of what a late request has begun")
        self.stage.require_programs()
        return self.proxy.count


def ten_minutes_older(requests):
    """Each time to come that they name, in s, ms, or us since 1970, is ten minutes earlier: who waited for it
    would wait too long."""
    def older(found):
        unit = 10 ** (len(found[0]) - 10)
        ahead = int(found[0]) - int(time.time() * unit)
        return b"%d" % (int(found[0]) - 600 * unit) if 0 <= ahead < 600 * unit else found[0]

    return re.sub(rb"\b(\d{10}|\d{13}|\d{16})\b", older, requests)


def forces_at_last(stage, program):
    for _ in range(5):
        program.say("force", stage.lock)
        answer = program.hear(30)
        if answer[0] == "forced":
            return
    raise Failed("it answers " + " ".join(answer))


def breaks_at_each(stage, fate, shares=False):
    """All turns once for each request, on a lock of its own."""
    if shares:
        stage.sharer()

    def turns(at):
        one = Stage(stage.port, stage.words, "%s.%d" % (stage.lock, at))
        try:
            return Turns(one, shares, fate, at).go()
        except (Failed, OSError) as failure:
            raise Failed("at request %d: %s" % (at, failure)) from failure
        finally:
            one.end()

    side_by_side(turns, range(1, turns(0) + 1), 20)


@check
def late_requests(stage):
    """A request that is carried out after the next operation, on a connection that broke, ends nothing of it."""
    breaks_at_each(stage, "late")


@check
def lost_requests(stage):
    """An operation goes on, on a new connection, when a request of it is lost."""
    breaks_at_each(stage, "lost")


@check
def unanswered_requests(stage):
    """So does one whose request was carried out, and not answered: it is not done twice."""
    breaks_at_each(stage, "unanswered")


@check
def late_force(stage):
    """A force that is carried out ten minutes late, on a connection that broke, ends no newer hold."""
    stage.others_hold()
    forces(stage, stage.program())

    def breaks(at):
        one = Stage(stage.port, stage.words, "%s.%d" % (stage.lock, at))
        try:
            between = one.proxy()
            between.fate, between.at = "late", at
            program = one.program(port=between.port)
            one.others_hold()
            forces_at_last(one, program)
            one.give("newer:1")
            between.kept = [(link, ten_minutes_older(requests)) for link, requests in between.kept]
            between.deliver()
            require(one.holders() == {"newer:1": "1"}, "at request %d: the lock hash is %s" % (at, one.holders()))
            return between.count
        finally:
            one.end()

    side_by_side(breaks, range(1, breaks(0) + 1))


@check
def share_late_requests(stage):
    """A late request ends no share, and no place of one that waits to share."""
    breaks_at_each(stage, "late", True)


@check
def share_unanswered_requests(stage):
    """What was carried out for one that shares, and not answered, is not done twice."""
    breaks_at_each(stage, "unanswered", True)


@check
def late_answer(stage):
    """An answer that comes after the lease it tells of begins no hold."""
    between = stage.proxy()
    program = stage.program(5000, port=between.port)
    stage.holds(program)  # so the server knows its script
    stage.releases(program)
    between.delay = 6
    program.say("acquire", stage.lock, 0, 4000)
    until(stage.holders, "a hold")
    time.sleep(3)
    between.delay = 0
    line = program.hear()
    holds = (stage.note("token"), stage.note("holder"), len(stage.holders()))
    require(line[0] != "held" or holds[0] == line[1] and holds[2] == 1, "it says it holds: %s" % (holds,))


def believing(stage, lease, delay=0):
    """A program that holds, by an answer that was late by so many s, and hears nothing from now on."""
    between = stage.proxy()
    program = stage.program(5000, 3000, between.port)
    program.say("holds", stage.lock)
    if program.hear() == ["unsupported"]:
        raise Skipped("it does not say until when it believes")
    stage.holds(program)  # so the server knows its script
    stage.releases(program)
    between.delay = delay
    program.say("acquire", stage.lock, 0, lease)
    program.expect("held")
    between.flows.clear()
    require(program_believes(stage, program), "it does not believe in its hold")
    return program


def program_believes(stage, program):
    program.say("holds", stage.lock)
    return program.hear()[0] == "held"


@check
def belief_ends(stage):
    """A holder believes in its hold until the lease has passed since it asked, and no longer."""
    program = believing(stage, 3000, delay=1)
    while True:
        there = stage.holders()
        if not program_believes(stage, program):
            return
        require(there, "it still believes in its hold")


@check
def belief_of_a_stopped_one(stage):
    """One that was stopped for longer than its lease knows at once that this has ended."""
    program = believing(stage, 0)  # which it would renew
    program.process.send_signal(signal.SIGSTOP)
    until(lambda: not stage.holders(), "the end of its lease")
    program.process.send_signal(signal.SIGCONT)
    require(not program_believes(stage, program), "it still believes in its hold")


@check
def belief_of_a_release(stage):
    """Nor does one that has sent its release, whatever became of that."""
    program = believing(stage, 600000)
    program.say("release", stage.lock)
    program.hear(60)
    require(not program_believes(stage, program), "it still believes in its hold")


def judge(name, port, words, lock=None):
    """(verdict, why) of a check of this program."""
    stage = None
    try:
        stage = Stage(port, words, lock or name)
        CHECKS[name](stage)
        stage.require_programs()
        return "ok", ""
    except Skipped as skipped:
        return "skip", str(skipped)
    except (Failed, lab.Refused, OSError, ValueError) as failure:
        return "not ok", str(failure) or type(failure).__name__
    finally:
        if stage:
            stage.end()


def side_by_side(function, values, most=12):
    """most: at a time; MOST in the environment: fewer, for programs that take long to start."""
    most = min(most, int(os.environ.get("MOST", most)))
    with concurrent.futures.ThreadPoolExecutor(most) as pool:
        try:
            return list(pool.map(function, values))
        except Failed:
            pool.shutdown(cancel_futures=True)
            raise


def run(words, port, names):
    """name -> (verdict, why), for these checks of this program."""
    lab.Redis(port).call("FLUSHALL")
    return dict(zip(names, side_by_side(lambda name: judge(name, port, words), names)))


def main(arguments):
    if "--list" in arguments:
        for name, function in CHECKS.items():
            print("%-24s %s" % (name, function.__doc__))
        return 0
    at = arguments.index("--") if "--" in arguments else len(arguments)
    mine, words = arguments[:at], arguments[at + 1:]
    if not words:
        print(__doc__, file=sys.stderr)
        return 64
    port = int(mine[1]) if mine[:1] == ["--port"] else lab.Server().port
    parts = mine[2:] if mine[:1] == ["--port"] else mine
    names = [name for name in CHECKS if not parts or any(part in name for part in parts)]
    results = run(words, port, names)
    for name, (verdict, why) in results.items():
        print("%s %s%s" % (verdict, name, ": " + why if why else ""))
    return 0 if results and all(verdict != "not ok" for verdict, _ in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
