-- What acquire.lua and release.lua begin with.
--
-- KEYS  1 lock, a hash: holder id -> hold count; its TTL is the lease. Count 0: one of our waiters
--         was handed the lock and has not confirmed it yet; the TTL is then its waiter timeout
--       2 queue, a list of waiter ids, first come first
--       3 timeout, a sorted set: waiter id -> ms after which Redisson evicts it
--       4 meta, a hash: what Redisson does not know of
--           token      the last fencing token
--           holder     the id that got it
--           released   the token of the last hold that was released
--           <id>       one of our waiters: when it was heard last, s and us, and its waiter timeout, ms
--           suspect:<id>  a Redisson waiter: its score, and when it was first found not listening, ms
--           woken      the Redisson waiter that was woken last, and its score then
--           since      when that was first done, ms
-- ARGV  1 id  2 void after, ms of the server's clock  3 target hold count
-- Reply {state, value, now}
--
-- Rules that keep a script which Redis stops half-way harmless: each key is read before any is
-- written (WRONGTYPE); what may be refused for lack of memory comes first, and never after
-- something was taken away (OOM); a lock that does not get its TTL is deleted again (NOPERM); a
-- waiter owns the lock before it leaves the queue.
--
-- Time: each call costs as much as all else that a script does. What comes often makes the fewest:
-- a free lock for which nobody waits, its release, heartbeats. Numbers are kept as the strings that
-- Redis gave, as Lua and Redis write them slowly.

local lock, queue, timeout, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, target = ARGV[1], ARGV[3]
local chain = 300000 -- Redisson's fairLockWaitTimeout
local call = redis.call

local time = call('time')
local micros = time[1] .. string.sub('00000' .. time[2], -6) -- since 1970
local now = tonumber(string.sub(micros, 1, -4))
if now > tonumber(ARGV[2]) then return {-2, 0, now} end

local head = call('lindex', queue, '0') -- false when nobody waits
local score = head and call('zscore', timeout, id)
local noted = ARGV[5] and id or head or id -- a release may have a use for the note on the first in line
local notes = call('hmget', meta, 'token', 'released', 'woken', noted)
local last, released, woken = notes[1] or '0', notes[2] or '0', notes[3]

-- The notes stay for a day after the lease has ended, and not much longer.
local function keep(lease)
  if call('pttl', meta) < lease + 86400000 then call('pexpire', meta, lease + 172800000) end
end

-- The lease ends after so long. The first in line looks again then: Redisson 3 reckons that from its
-- score, and when that has passed never looks again. May fail: the lease matters more.
local function set_head(lease)
  if head then redis.pcall('zadd', timeout, 'XX', now + lease + chain, head) end
end

-- Gives the free lock to owner, and returns the token. The first grant in each thousand seconds sees
-- to it that the notes stay, and when nobody waits, drops those on waiters that went by themselves.
local function grant(owner, lease, holds)
  local token, before = micros, tonumber(last) or 0
  if before >= tonumber(micros) and before < 2 ^ 53 then token = string.format('%.0f', before + 1) end
  local stale = string.sub(last, 1, -10) ~= string.sub(micros, 1, -10)
  if stale and not head and call('hlen', meta) > 5 then
    call('hset', meta, 'token', last) -- refused here, it leaves the last token where it is
    call('del', meta)
  end
  call('hset', meta, 'token', token, 'holder', owner, 'released', released)
  if stale or #lease > 7 then keep(lease) end
  call('hset', lock, owner, holds)
  if redis.pcall('pexpire', lock, lease) ~= 1 then
    call('del', lock)
    call('pexpire', lock, lease) -- is refused again
  end
  return token
end
