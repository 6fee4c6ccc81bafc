#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second client, written from lock/FORMAT.md alone: no line of it, nor of its script, comes from
the library. It shows that the page suffices, and it is what the peer's own test breaks. It is no
client for use: it does one thing at a time. Of the two ways to do no harm by late requests it goes the
second: what begins after a connection broke has a new id.

Arguments and lines: RELEASES.md.
"""

import os
import re
import select
import sys
import time
import uuid

sys.dont_write_bytecode = True  # not into the tree
import lab

SCRIPT = r"""
local lock, queue, timeout, notes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local verb, id, lease, patience, count, token, limit, renewed = unpack(ARGV)
local call, CHAIN, DAY, FORTNIGHT, GONE = redis.call, 300000, 86400000, 1209600000, 5000
local clock = call('time')
local micros = clock[1] .. string.format('%06d', clock[2])
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Each key is read before any is written.
local hold = call('hgetall', lock)
local holder, held = hold[1], hold[2]
local last = tonumber(call('hget', notes, 'token')) or 0
local first = call('lindex', queue, 0)
call('zscore', timeout, id)

local function prolong(lease)
  if call('pttl', notes) < lease + DAY then call('pexpire', notes, lease + 2 * DAY) end
end

local function listens(channel)
  if call('pubsub', 'numsub', channel)[2] > 0 then return 'publish' end
  local shard = redis.pcall('pubsub', 'shardnumsub', channel)
  return not shard.err and shard[2] > 0 and 'spublish'
end

-- For how long a handover to a waiter may be unconfirmed
local function claim_of(note, silent)
  return string.match(note .. ' ', ' C([1-9]%d%d%d%d?%d?%d?%d?%d?) ') or silent
end

local function remove(waiter)
  call('hdel', notes, waiter, 'suspect:' .. waiter)
  call('lrem', queue, 1, waiter)
  call('zrem', timeout, waiter)
  if waiter == first and call('lindex', queue, 0) ~= first then
    first = call('lindex', queue, 0)
    local channel = 'redisson_lock__channel' .. string.sub(queue, 20) .. ':' .. (first or '')
    local by = first and string.find(call('hget', notes, first) or '', ' C', 1, true) and listens(channel)
    if by then redis.pcall(by, channel, '0') end
  end
end

local function tell_first(lease)
  local first = call('lindex', queue, 0)
  if first then call('zadd', timeout, 'XX', now + lease + CHAIN + 100, first) end
end

local function own(owner, lease, count)
  local new = micros
  if last >= tonumber(micros) and last < 2 ^ 53 then new = string.format('%.0f', last + 1) end
  call('hset', notes, 'token', new, 'holder', owner)
  prolong(lease)
  call('del', lock)
  call('hset', lock, owner, count)
  call('pexpire', lock, lease)
  remove(owner)
  tell_first(lease)
  return new
end

-- True: it is the caller's.
local function hand_over(caller)
  local passed, blocked = {}, false
  for _, waiter in ipairs(call('lrange', queue, 0, -1)) do
    if waiter == caller then break end
    local channel = 'redisson_lock__channel' .. string.sub(queue, 20) .. ':' .. waiter
    local by = listens(channel)
    local note = call('hget', notes, waiter)
    local s, us, silent = string.match((note or '') .. ' ', '^(%d+) (%d+) ([1-9]%d%d%d%d?%d?%d?%d?%d?) ')
    if s and s * 1000 + us / 1000 + silent <= now then
      remove(waiter)
    elseif s and by then
      if blocked then return false end
      local claim = claim_of(note, silent)
      local new = own(waiter, claim, 0)
      call(by, channel, new .. ' ' .. string.format('%.0f', now) .. ' ' .. claim)
      return false
    elseif s then
      passed[#passed + 1] = waiter
    else
      local score = call('zscore', timeout, waiter) or '0'
      local suspect, woken = 'suspect:' .. waiter, waiter .. ' ' .. score
      local since = tonumber(call('hget', notes, 'since')) or 0
      local counts = call('hget', notes, 'woken') == woken and since + 3 * GONE >= now
      if call('lindex', queue, 0) ~= waiter then counts = false end
      if by and blocked then return false end
      if not counts and by then
        call('hset', notes, 'woken', woken, 'since', string.format('%.0f', now))
        since = now
        prolong(0)
      elseif not counts then
        local seen, at = string.match(call('hget', notes, suspect) or '', '(%S+) (%d+)')
        since = seen == score and tonumber(at) or now
        call('hset', notes, suspect, score .. ' ' .. string.format('%.0f', since))
        prolong(0)
      end
      if since + GONE <= now or not by and tonumber(score) <= now then
        remove(waiter)
      elseif by then
        for _, before in ipairs(passed) do call('zincrby', timeout, CHAIN, before) end
        call('lrem', queue, 1, waiter)
        call('lpush', queue, waiter)
        call('hdel', notes, suspect)
        call(by, channel, '0')
        return false
      else
        blocked = true
      end
    end
  end
  return not blocked
end

local function end_hold(with_token)
  if with_token then
    call('hset', notes, 'released', with_token)
    prolong(0)
  end
  call('del', lock)
  hand_over()
end

local function acquire()
  if holder == id then
    if last > tonumber(token) then return string.format('%.0f', last) end -- a hold or a claim
    call('hset', notes, 'released', token) -- given up before
    call('del', lock)
    holder = nil
  end
  if not holder and hand_over(id) then return own(id, lease, 1) end
  if holder then call('hdel', notes, 'woken') end
  if patience == '0' then return false end
  local score, place = call('zscore', timeout, id), call('lpos', queue, id)
  if not (score and place) then
    place = call('rpush', queue, id)
    call('zadd', timeout, now + math.max(call('pttl', lock), 0) + place * CHAIN, id)
  elseif tonumber(score) < now + (place + 1) * CHAIN then
    call('zadd', timeout, now + (place + 1) * CHAIN, id)
  end
  call('pexpire', queue, FORTNIGHT)
  call('pexpire', timeout, FORTNIGHT)
  call('hset', notes, id, clock[1] .. ' ' .. clock[2] .. ' ' .. patience)
  prolong(0)
  return false
end

-- Sharing. It reads all holders each time, which the page does not forbid.

local fields, ends, sharers, alone = {}, {}, 0, false
for at = 1, #hold, 2 do
  local till = string.match(hold[at + 1], '^%d+ (%d+) %d+ ')
  if till and tonumber(till) > now and tonumber(till) < now + 2000000000 then
    fields[hold[at]], ends[hold[at]] = hold[at + 1], tonumber(till)
    sharers = sharers + 1
  elseif not till and hold[at] ~= 'shared' then
    alone = hold[at]
  end
end

local function whole(number) return string.format('%.0f', number) end

-- Writes these fields, together with the table, and the TTL.
local function write(...)
  local words, latest, counts = {...}, 0, {}
  for _, till in pairs(ends) do counts[till] = (counts[till] or 0) + 1 end
  local table_of = {}
  for till, holders in pairs(counts) do
    table_of[#table_of + 1] = whole(till) .. ' ' .. holders
    latest = math.max(latest, till)
  end
  call('hset', lock, 'shared', table.concat(table_of, ' '), unpack(words))
  call('pexpire', lock, latest - now)
  tell_first(latest - now)
end

-- Deletes the fields of those whose leases have ended, when they are many.
local function clean()
  if #hold / 2 <= 2 * sharers + 16 then return end
  for at = 1, #hold, 2 do
    if not fields[hold[at]] and hold[at] ~= 'shared' then call('hdel', lock, hold[at]) end
  end
end

-- Until when each limit is in use. Where nobody else holds, none counts.
local limits = {}
for size, till in string.gmatch(call('hget', notes, 'limit') or '', '(%d+) (%d+)') do
  till = tonumber(till)
  if #size <= 9 and tonumber(size) > 0 and till > now and till < now + 2000000000 then limits[tonumber(size)] = till end
end

local function full(own)
  if own ~= '0' and sharers >= tonumber(own) then return true end
  for size in pairs(limits) do
    if sharers > 0 and sharers >= size then return true end
  end
  return false
end

local function name_limit(own, till)
  if sharers == 0 then limits = {} end
  local size, words = tonumber(own), {}
  if size > 0 then limits[size] = math.max(limits[size] or till, till) end
  for named in pairs(limits) do words[#words + 1] = named end
  table.sort(words)
  for at, named in ipairs(words) do words[at] = named .. ' ' .. whole(limits[named]) end
  call('hset', notes, 'limit', table.concat(words, ' '))
end

-- least: it ends no sooner.
local function set_share(owner, token, lease, count, words, own, least)
  local step = 1
  while step * 2 <= lease / 16 do step = step * 2 end
  local till = math.max(math.ceil((now + lease) / step) * step, least or 0)
  name_limit(own, till)
  sharers, ends[owner] = sharers + 1, till
  fields[owner] = token .. ' ' .. whole(ends[owner]) .. ' ' .. count .. ' ' .. words
  write(owner, fields[owner])
end

local function enter(owner, lease, count, words, own)
  local new = micros
  if last >= tonumber(micros) and last < 2 ^ 53 then new = whole(last + 1) end
  last = tonumber(new)
  call('hset', notes, 'token', new, 'holder', owner, 'lease', new)
  prolong(lease)
  set_share(owner, new, lease, count, words, own)
  clean()
  remove(owner)
  tell_first(call('pttl', lock))
  return new
end

-- True: one of Redisson's that does not listen is gone, which takes 5 s from when that was first seen.
local function is_gone(waiter)
  local score, suspect = call('zscore', timeout, waiter) or '0', 'suspect:' .. waiter
  local seen, at = string.match(call('hget', notes, suspect) or '', '(%S+) (%d+)')
  at = seen == score and tonumber(at) or now
  call('hset', notes, suspect, score .. ' ' .. whole(at))
  prolong(0)
  return at + GONE <= now or tonumber(score) <= now
end

-- True: nobody stops the caller. It knows no other ways to wake Redisson's than to let them be.
local function let_in(caller)
  for _, waiter in ipairs(call('lrange', queue, 0, -1)) do
    if waiter == caller then return true end
    local channel = 'redisson_lock__channel' .. string.sub(queue, 20) .. ':' .. waiter
    local by = listens(channel)
    local note = call('hget', notes, waiter)
    local s, us, silent, room = string.match((note or '') .. ' ', '^(%d+) (%d+) ([1-9]%d%d%d%d?%d?%d?%d?%d?) S(%d+) ')
    if not s then s, us, silent = string.match((note or '') .. ' ', '^(%d+) (%d+) ([1-9]%d%d%d%d?%d?%d?%d?%d?) ') end
    if s and s * 1000 + us / 1000 + silent <= now then
      remove(waiter)
    elseif by and room and not full(room) then
      local claim = claim_of(note, silent)
      local new = enter(waiter, tonumber(claim), 0, '0', room)
      call(by, channel, new .. ' ' .. whole(now) .. ' ' .. claim)
    elseif not by and not s and is_gone(waiter) then
      remove(waiter)
    elseif by or not s then
      return false
    end
  end
  return true
end

local function share()
  if alone == id then -- a claim, or a hold, that was handed over
    alone = false
    set_share(id, whole(last), tonumber(lease), held, lease .. renewed, limit)
    let_in()
    return whole(last)
  elseif ends[id] and tonumber(string.match(fields[id], '%d+')) > tonumber(token) then
    return string.match(fields[id], '%d+')
  end
  if not alone and let_in(id) and not full(limit) then
    local new = enter(id, tonumber(lease), 1, lease .. renewed, limit)
    let_in()
    return new
  end
  holder = 'others'
  local waits = acquire()
  if patience ~= '0' then
    call('hset', notes, id, clock[1] .. ' ' .. clock[2] .. ' ' .. patience .. ' S' .. limit)
  end
  return waits
end

local function unshare(with_token)
  local own = ends[id] and string.match(fields[id], '%d+')
  if alone == id then own = whole(last) end
  if not own or with_token and own ~= token then
    return with_token and call('hget', notes, 'released') == token and token
  end
  call('hset', notes, 'released', own)
  ends[id], sharers = nil, sharers - 1
  if alone == id or sharers == 0 then
    call('del', lock)
    hand_over()
  else
    write(id, own .. ' 0 0 0')
    call('hdel', lock, id)
    let_in()
  end
  return own
end

local function set_shared()
  local own = ends[id] and string.match(fields[id], '%d+')
  local least = own and string.match(fields[id], '^%d+ %d+ (%d+)') ~= '0' and ends[id]
  if alone == id then
    own = whole(last)
  elseif own then
    sharers = sharers - 1
    ends[id] = nil
  end
  if own ~= token then return false end
  alone = false
  set_share(id, own, tonumber(lease), count, lease .. renewed, limit, least)
  let_in()
  return own
end

-- It knows no word that a later release may need: without a hold or a place it changes nothing.
local lives = holder == id or ends[id] or call('zscore', timeout, id)
if call('hget', notes, 'needs') and not lives and verb ~= 'inspect' and verb ~= 'whose' and verb ~= 'set' then
  if verb == 'acquire' or verb == 'force' then return 'needs' end
  return call('hget', notes, 'released') == token and token
end

if limit ~= '' then
  if verb == 'acquire' then return share() end
  if verb == 'set' then return set_shared() end
  if verb == 'release' then return unshare(true) end
  remove(id)
  return unshare(false)
end

if verb == 'acquire' then
  return acquire()
elseif verb == 'set' then
  if holder ~= id or tonumber(token) ~= last then return false end
  if held == '0' or call('pttl', lock) < tonumber(lease) then call('pexpire', lock, lease) end
  call('hset', lock, id, count)
  prolong(call('pttl', lock))
  tell_first(call('pttl', lock))
  return token
elseif verb == 'release' then
  if holder == id and tonumber(token) == last then
    end_hold(token)
    return token
  end
  return call('hget', notes, 'released') == token and token
elseif verb == 'leave' then
  remove(id)
  if holder == id then end_hold(string.format('%.0f', last)) end
elseif verb == 'whose' then
  return {string.format('%.0f', last), holder or ''}
elseif verb == 'force' then
  if holder and holder == count and tonumber(token) == last then end_hold() end
elseif verb == 'inspect' then
  local words = {}
  for _, waiter in ipairs(call('lrange', queue, 0, -1)) do
    local note = call('hget', notes, waiter)
    local s, us, silent = string.match((note or '') .. ' ', '^(%d+) (%d+) ([1-9]%d%d%d%d?%d?%d?%d?%d?) ')
    if s then words[#words + 1] = s * 1000 + us / 1000 + silent > now and 'alive' or 'dead'
    elseif note then words[#words + 1] = 'unknown'
    else words[#words + 1] = tonumber(call('zscore', timeout, waiter)) > now and 'alive' or 'dead'
    end
  end
  return table.concat(words, ' ')
end
return false
"""

ANSWER = 10  # how long one may take, in s, before the connection counts as broken
GRANT = re.compile(r"(\d+) (\d+) (\d+)( .*)?", re.DOTALL)


class Handle:
    def __init__(self, client, name, limit=""):
        if re.fullmatch(r"\{[^{]*\}", name, re.DOTALL):
            raise lab.Refused("a name in braces")
        braced = name if "{" in name else "{" + name + "}"
        self.name, self.braced = name, braced
        self.keys = [name, "redisson_lock_queue:" + braced, "redisson_lock_timeout:" + braced,
                     "fairlock:" + braced]
        self.number = "%s:%d" % (client.uuid, len(client.handles) + 1)
        self.take_id(client)
        self.limit = limit  # of those who share; none: it wants the lock alone
        self.count = 0
        self.token = "0"  # the last one, of a hold or given up
        self.lease = 0
        self.renewed = ""
        self.renew_at = float("inf")
        self.ends = 0  # until when it believes in its hold

    def take_id(self, client):
        """A new one, if a connection has broken since the last: that may still carry out what it asked."""
        self.id = "%s.%d" % (self.number, client.breaks)
        self.channel = "redisson_lock__channel:%s:%s" % (self.braced, self.id)


class Client:
    def __init__(self, port, waiter_ms=5000, lease_ms=30000):
        self.port = port
        self.breaks = 0  # of connections with a request unanswered
        self.commands, self.messages = self.connect(), self.connect()
        self.waiter_ms, self.lease_ms = waiter_ms, lease_ms
        self.uuid = uuid.uuid4().hex
        self.handles = {}

    def connect(self):
        while True:
            try:
                return lab.Redis(self.port)
            except OSError:
                time.sleep(0.05)

    def listen(self, handle):
        while True:
            try:
                self.messages.call("SUBSCRIBE", handle.channel)
                return
            except (OSError, lab.Failed):
                self.messages = self.connect()

    def stop_listening(self, handle):
        try:
            self.messages.send("UNSUBSCRIBE", handle.channel)
            while self.messages.read()[0] != "unsubscribe":
                pass
        except (OSError, lab.Failed):
            self.messages = self.connect()

    def message(self, handle, seconds):
        """The next one, or None; an unknown one if some may have been lost."""
        try:
            return self.messages.message(seconds)
        except (OSError, lab.Failed):
            self.listen(handle)
            return [None, None, "broken"]

    def run(self, handle, verb, patience=0, count=0):
        """Until it is answered; a request of a hold, for as long as it believes in that; a release, for a while."""
        last = handle.ends if verb == "set" and handle.count > 0 else float("inf")
        if verb == "release":
            last = time.monotonic() + ANSWER
        while time.monotonic() < last:
            sent = time.monotonic()
            try:
                self.commands.send("EVAL", SCRIPT, 4, *handle.keys, verb, handle.id, handle.lease,
                                   patience, count, handle.token, handle.limit, handle.renewed)
                if not self.commands.stream.comes(min(ANSWER, last - sent)):
                    raise lab.Failed("no answer")
                answer = self.commands.read()
            except (OSError, lab.Failed):
                self.breaks += 1
                self.commands = self.connect()
                continue
            if answer == "needs":
                raise lab.Refused("a later release uses the lock")
            if not answer or verb not in ("acquire", "set"):
                return answer
            ends = sent + handle.lease / 1000 * 63 / 64 - 0.002
            if time.monotonic() < ends:
                handle.ends = ends
                return answer
        return False

    def renew(self):
        for handle in self.handles.values():
            if time.monotonic() >= handle.renew_at:
                handle.renew_at = time.monotonic() + handle.lease / 3000
                if not self.run(handle, "set", count=handle.count):
                    handle.renew_at = float("inf")  # lost

    def held(self, handle, token, count, renewed):
        handle.token, handle.count = token, count
        handle.renew_at = time.monotonic() + handle.lease / 3000 if renewed else float("inf")
        return "held " + token

    def acquire(self, handle, wait_ms, lease_ms):
        handle.lease = lease_ms or self.lease_ms
        handle.renewed = "" if lease_ms else "+"
        if handle.count > 0:
            if not self.run(handle, "set", count=handle.count + 1):
                return "lost"
            return self.held(handle, handle.token, handle.count + 1, not lease_ms)
        handle.take_id(self)
        if wait_ms == 0:
            token = self.run(handle, "acquire")
            return self.held(handle, token, 1, not lease_ms) if token else "busy"
        self.listen(handle)
        token = self.wait(handle, time.monotonic() + wait_ms / 1000)
        if not token:
            self.run(handle, "leave")
        self.stop_listening(handle)
        return self.held(handle, token, 1, not lease_ms) if token else "timeout"

    def wait(self, handle, end):
        beat_at = 0
        while time.monotonic() < end:
            self.renew()
            if time.monotonic() >= beat_at:
                beat_at = time.monotonic() + self.waiter_ms * 2 / 5000
                token = self.run(handle, "acquire", self.waiter_ms)
                if token:
                    return self.confirm(handle, token)
            message = self.message(handle, max(0, min(end, beat_at, time.monotonic() + 0.1) -
                                                  time.monotonic()))
            grant = message and GRANT.fullmatch(message[2])
            if grant and self.confirm(handle, grant[1]):
                return grant[1]
            if message:
                beat_at = 0
        return None

    def confirm(self, handle, token):
        before, handle.token = handle.token, token
        confirmed = self.run(handle, "set", count=1)
        handle.token = before
        return confirmed

    def release(self, handle):
        if handle.count == 0:
            return "not-held"
        handle.count -= 1
        if handle.count > 0:
            return "released" if self.run(handle, "set", count=handle.count) else "lost"
        handle.renew_at = float("inf")
        return "released" if self.run(handle, "release") else "lost"

    def force(self, handle):
        """That hold only, so a late request ends no other."""
        before = handle.token
        handle.token, holder = self.run(handle, "whose")
        self.run(handle, "force", count=holder)
        handle.token = before

    def handle_of(self, name, limit=""):
        key = name + " " + limit if limit else name
        if key not in self.handles:
            self.handles[key] = Handle(self, name, limit)
        return self.handles[key]

    def obey(self, verb, name, *numbers):
        if verb in ("share", "unshare", "share-id"):
            verb = {"share": "acquire", "unshare": "release", "share-id": "id"}[verb]
            handle, numbers = self.handle_of(name, numbers[0]), numbers[1:]
        else:
            handle = self.handle_of(name)
        if verb == "acquire":
            return self.acquire(handle, *map(int, numbers))
        if verb == "release":
            return self.release(handle)
        if verb == "id":
            return "id " + handle.id
        if verb == "holds":
            believes = handle.count > 0 and time.monotonic() < handle.ends
            return "held " + handle.token if believes else "not-held"
        if verb == "force":
            self.force(handle)
            return "forced"
        if verb == "inspect":
            return "waiters " + self.run(handle, "inspect")
        return "unsupported"


def main():
    client = Client(int(sys.argv[2]), *map(int, sys.argv[3:]))
    print("ready", flush=True)
    kept = b""
    while True:
        client.renew()
        if not select.select([0], [], [], 0.05)[0]:
            continue
        some = os.read(0, 4096)
        if not some:
            return
        kept += some
        while b"\n" in kept:
            line, kept = kept.split(b"\n", 1)
            try:
                answer = client.obey(*line.decode().split())
            except lab.Refused as error:
                answer = "error %s" % error
            print(answer, flush=True)


if __name__ == "__main__":
    main()
