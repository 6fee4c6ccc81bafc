-- SPDX-License-Identifier: Apache-2.0
-- What all scripts but inspect.lua begin with.
--
-- KEYS  1 lock, a hash: holder id -> hold count; its TTL is the lease. Count 0: one of our waiters
--         was handed the lock and has not confirmed it yet; the TTL is then its claim. If it is shared:
--         see share.lua
--       2 queue, a list of waiter ids, first come first
--       3 timeout, a sorted set: waiter id -> ms after which Redisson evicts it
--       4 meta, a hash: what Redisson does not know of
--           token      the last fencing token
--           holder     the id that got it
--           released   the token of the last hold that was released
--           lease      for people who look at it: the token of a hold, its lease, and a + if it is
--                      renewed; the token alone: the hold was handed over, or its lease is not known
--           <id>       one of our waiters: when it was heard last, s and us, and its waiter timeout,
--                      ms; perhaps S and a limit, see share.lua; perhaps C and its claim, ms: for so
--                      long a handover to it may be unconfirmed. A later release may say more
--           suspect:<id>  a Redisson waiter: its score, and when first found not listening, ms
--           woken      the Redisson waiter that was woken last, and its score then
--           since      when that was first done, ms
--           ended      for people: the token of the hold that was released last and left the lock free,
--                      and when, us
--           broken     for people: the token of the hold that was broken last, when, ms, and perhaps words
--           needs      words of a later release, which none of ours writes: who does not know each of
--                      them begins nothing
-- ARGV  1 the request: words with a space between them, because each further argument would cost
--         a waiter 200 bytes a minute
--           id       of the waiter or holder
--           expires  when the request does, ms of the server's clock
--           mode     what to do, and right behind it, of a waiter whose claim is not its waiter timeout, C and
--                    that claim, ms
--           lease    ms, and a + if it will be renewed; 0 in a release
--           token    of a hold; may be left out
-- Reply {state, value, now}; or the error NEEDS and those words
--
-- Redis may stop a script half-way. These rules make that harmless: each key is read before any is
-- written (WRONGTYPE); commands that may be refused for lack of memory come first, and never after a
-- deletion (OOM); a lock that does not get its TTL is deleted again (NOPERM); a waiter owns the lock
-- before it leaves the queue. While a slot of a cluster moves away, a key that does not exist counts as
-- moved, and a script that uses it stops: so commands that may remove a key come last.
--
-- Speed: each call costs as much as everything else in a script. So the common cases make as few calls
-- as possible: acquiring a lock for which nobody waits, its release, heartbeats. Numbers stay the
-- strings that Redis returns, because Lua and Redis are slow to format them.

local lock, queue, timeout, meta = unpack(KEYS)
local id, expires, mode, claim, lease, renews, token = ARGV[1]:match('^(%S+) (%d+) (%-?%d+)(C?%d*) (%d+)(%+?) ?(%d*)$')
local chain = 300000 -- Redisson's fairLockWaitTimeout
local call = redis.call

local time = call('time')
local micros = time[1] .. ('00000' .. time[2]):sub(-6) -- since 1970
local now = tonumber(micros:sub(1, -4))
if now > expires + 0 and (token == '' or mode .. lease ~= '00') then return {-2, 0, now} end -- a release ends one hold, however late

local head = call('lindex', queue, '0') -- false when nobody waits
local score = head and call('zscore', timeout, id)
local noted = lease ~= '0' and id or head or id -- whose note to read: a release may need that of the head
local notes = call('hmget', meta, 'token', 'released', 'woken', noted, 'needs')
local last, released, woken = notes[1] or '0', notes[2] or '0', notes[3]
local before = tonumber(last) or 0

-- Makes the notes last for a day after the lease has ended, and not much longer. If the server refuses
-- to set their TTL, they are deleted, because nobody may ever use the lock again.
local function prolong(lease)
  local left, long = call('pttl', meta), lease + 172800000
  if left < lease + 86400000 and redis.pcall('pexpire', meta, long) ~= 1 then
    if left < 0 then call('del', meta) end
    call('pexpire', meta, long) -- it is refused again, and the script ends with that error
  end
end

-- Sets the score of the first in line, for a lease that ends in so many ms. Redisson 3 computes from the
-- score, by its own clock, when it looks again. If the lock is still held then, it never looks again.
-- So the score is 100 ms more than the lease, because PEXPIRE may count from a later millisecond than
-- TIME returned, and clocks differ. This may fail without harm, because the lease matters more.
local function set_head(lease)
  if head then redis.pcall('zadd', timeout, 'XX', now + lease + chain + 100, head) end
end

-- Gives the free lock to owner, and returns the token. The first grant in each thousand seconds prolongs
-- the notes, and deletes those that no longer count: those on suspects, and, if nobody waits, all notes
-- on waiters, whose fields have a colon, because every id has one. Fields of a later release stay.
local function grant(owner, lease, holds)
  local new = micros
  if before >= micros + 0 and before < 2 ^ 53 then new = ('%.0f'):format(before + 1) end
  local stale = last:sub(1, -10) ~= micros:sub(1, -10)
  if stale and call('hlen', meta) > 6 then
    for at, field in ipairs(call('hgetall', meta)) do
      if at % 2 == 1 and field:find(head and '^suspect:' or ':') then call('hdel', meta, field) end
    end
  end
  local known = new .. (holds == '1' and ' ' .. lease .. renews or '')
  call('hset', meta, 'token', new, 'holder', owner, 'released', released, 'lease', known)
  if stale or #lease > 7 then prolong(lease) end
  call('hset', lock, owner, holds)
  if redis.pcall('pexpire', lock, lease) ~= 1 then
    call('del', lock)
    call('pexpire', lock, lease) -- refused again: the script ends with that error
  end
  return new
end
