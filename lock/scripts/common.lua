-- The part that acquire.lua and release.lua share: it stands before each of them.
--
-- KEYS  1 lock, a hash: holder id -> hold count; its TTL is the lease. Count 0: one of our waiters
--         was handed the lock and has not confirmed it yet; the TTL is then its waiter timeout
--       2 queue, a list of waiter ids, first come first
--       3 timeout, a sorted set: waiter id -> ms after which Redisson evicts it
--       4 meta, a hash: what Redisson does not know of
--           token      the last fencing token
--           holder     the id that got it
--           released   the token of the last hold that was released
--           <id>       one of our waiters: alive until, ms, and its waiter timeout, ms
--           suspect:<id>  a Redisson waiter: its score, and when it was first found not listening, ms
--           woken      the Redisson waiter that was woken last, and its score then
--           since      when that was first done, ms
-- ARGV  1 id  2 void after, ms of the server's clock  3 target hold count
-- Reply {state, value, now}
--
-- Rules that keep a script which Redis stops half-way harmless: each key is read before any is
-- written (WRONGTYPE); what may be refused for lack of memory comes first, and never after
-- something was taken away (OOM); a hash that needs a TTL gets it from a command that was
-- allowed a moment before (NOPERM); a waiter owns the lock before it leaves the queue.

local lock, queue, timeout, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, target = ARGV[1], tonumber(ARGV[3])
-- What Redis is told as it stands is a string: it writes numbers slowly.
local redisson_timeout = '5000' -- a Redisson waiter that has not been heard of for this long is dead
local chain = 300000            -- Redisson's fairLockWaitTimeout
local fortnight = '1209600000'  -- a hold or a wait keeps its keys for this long: no lease is longer
local day = '86400000'          -- the last token is kept for this long after the last release
local call = redis.call

local time = call('time')
local micros = time[1] * 1000000 + time[2]
local now = (micros - micros % 1000) / 1000
if now > tonumber(ARGV[2]) then return {-2, 0, now} end

local count = call('hget', lock, id)
local head = call('lindex', queue, '0') -- false when nobody waits
local score = call('zscore', timeout, id)
local notes = call('hmget', meta, 'token', 'released', 'woken')
local last, released, woken = notes[1] or '0', notes[2] or '0', notes[3]

-- Redisson names the channel after the lock as it names the queue.
local prefix = 'redisson_lock__channel' .. string.sub(queue, 20) .. ':'

local function remember(...)
  call('hset', meta, ...)
  call('pexpire', meta, fortnight)
end

local function forget(waiter)
  call('lrem', queue, '1', waiter)
  call('zrem', timeout, waiter)
  call('hdel', meta, waiter, 'suspect:' .. waiter)
  if waiter == head then head = call('lindex', queue, '0') end
end

-- The command that reaches whoever listens on channel; nil when nobody does here. In a cluster,
-- Redisson since 3.22 and we listen by shard.
local function heard(channel)
  if call('pubsub', 'numsub', channel)[2] > 0 then return 'publish' end
  local shard = redis.pcall('pubsub', 'shardnumsub', channel)[2] -- nil: an error, of before 7.0
  return shard and shard > 0 and 'spublish'
end

-- The lease ends after so long. The first in line looks again then: Redisson 3 reckons that from its
-- score, and when that has passed never looks again. May fail: the lease matters more.
local function set_head(lease)
  if head then redis.pcall('zadd', timeout, 'XX', now + lease + chain, head) end
end

-- Never shortens it: a request of an earlier hold, or of before a re-entry, may come late.
local function extend_lease(lease)
  local left = call('pttl', lock)
  if left < tonumber(lease) then
    call('pexpire', lock, lease)
    left = lease
  end
  call('pexpire', meta, fortnight)
  set_head(left)
end

-- Gives the free lock to owner, who may stand in the queue, and returns the new token, as a number
-- and as a text.
local function grant(owner, lease, queued, holds)
  local token, before = micros, tonumber(last) or 0
  if before >= token and before < 2 ^ 53 then token = before + 1 end
  local text = string.format('%.0f', token)
  if not head and call('hlen', meta) > 5 then -- notes on waiters that went by themselves
    remember('token', last) -- refused here, it leaves the last token where it is
    call('del', meta)
  end
  remember('token', text, 'holder', owner, 'released', released)
  call('hset', lock, owner, holds)
  call('pexpire', lock, lease)
  if queued then forget(owner) end
  set_head(lease)
  return token, text
end

-- A Redisson waiter takes the lock itself, and only from the head of the list. Our waiters before
-- it that do not listen stay in the queue, behind it; its acquisition will take one chain link
-- from every score, so they get one. False when it was woken redisson_timeout ago and has not taken
-- it: its host lost power, and the server has not noticed yet.
local function wake_redisson(waiter, place, listens)
  local waking = waiter .. ' ' .. (call('zscore', timeout, waiter) or '')
  local since = tonumber(call('hget', meta, 'since')) or 0
  if woken ~= waking or since + 3 * redisson_timeout < now or since > now then -- scores come again
    remember('woken', waking, 'since', now)
  elseif since + redisson_timeout <= now then
    return false
  end
  for ahead = 0, place - 1 do
    call('zincrby', timeout, chain, call('lindex', queue, ahead))
  end
  if place > 0 then
    call('lrem', queue, 1, waiter)
    call('lpush', queue, waiter)
    head = waiter
  end
  call('hdel', meta, 'suspect:' .. waiter)
  call(listens, prefix .. waiter, '0')
  return true
end

-- A Redisson waiter enters the queue before it listens. So one that does not listen is suspect, and
-- lapses redisson_timeout after that was first seen. What was seen during an earlier wait of its own,
-- with another score, does not count.
local function redisson_lapsed(waiter)
  local evict = call('zscore', timeout, waiter) or '0'
  local seen, since = string.match(call('hget', meta, 'suspect:' .. waiter) or '', '(%S+) (%d+)')
  if seen == evict and since + redisson_timeout <= now then return true end
  if seen ~= evict or tonumber(since) > now then remember('suspect:' .. waiter, evict .. ' ' .. now) end
  return tonumber(evict) <= now
end

-- The lock is free: offers it to the waiters in order. True when caller may take it; 'given' when a
-- waiter of ours owns it now.
local function hand_over(caller)
  local place, pending = 0, false
  while true do
    local waiter = head
    if place > 0 then waiter = call('lindex', queue, place) end
    if not waiter or waiter == caller then return not pending end
    local alive = call('hget', meta, waiter)
    local limit, patience = string.match(alive or '', '^(%d+) (%d%d%d%d%d?%d?)$')
    local channel = prefix .. waiter
    local listens = heard(channel)
    if not alive and not listens then
      if redisson_lapsed(waiter) then
        forget(waiter)
      else
        pending = true
        place = place + 1
      end
    elseif alive and tonumber(limit or 0) <= now then
      forget(waiter)
    elseif pending then
      return false
    elseif not alive then
      if wake_redisson(waiter, place, listens) then return false end
      forget(waiter)
    elseif listens then
      local _, token = grant(waiter, patience, true, '0')
      call(listens, channel, token .. ' ' .. now .. ' ' .. patience)
      return 'given'
    else
      place = place + 1
    end
  end
end
