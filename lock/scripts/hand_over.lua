-- SPDX-License-Identifier: Apache-2.0
-- What all scripts but inspect.lua do when the lock is free and somebody waits.

-- For how long a waiter without a readable note may be silent: one of Redisson, or of a later release
local redisson_timeout = '5000'

-- A word of a note that is a span, ms
local span = '([1-9]%d%d%d%d?%d?%d?%d?%d?)%f[ %z]'

-- How a waiter listens, false if it does not; where; and what publishes so. Redisson names the channel after
-- the lock, as it does the queue. In a cluster, Redisson since 3.22 and our waiters listen by shard.
local function reach(waiter)
  local channel = 'redisson_lock__channel' .. queue:sub(20) .. ':' .. waiter
  local how, tell = call('pubsub', 'numsub', channel)[2] > 0 and 'publish', call
  if not how then
    tell = redis.pcall -- outside of a cluster nobody has been asked for the right to SPUBLISH
    local shard = redis.pcall('pubsub', 'shardnumsub', channel)[2] -- nil: an error, before 7.0
    how = shard and shard > 0 and 'spublish'
  end
  return how, channel, tell
end

-- Removes a waiter. Its note goes after its place, because a place without a note is taken for that of a
-- waiter of Redisson, and before its score, because who has a note and a score is taken to have a place. The
-- first HDEL shows that the second one will not be refused. The next waiter is looked up before, because
-- Redis deletes the keys of the queue with the last waiter. Who becomes the first, and has a claim of its own,
-- is to ask when the hold ends: its heartbeats may be too rare for that.
local function forget(waiter)
  call('hdel', meta, 'suspect:' .. waiter)
  if not head then return call('hdel', meta, waiter) end
  local rare
  if waiter == head then
    head = call('lindex', queue, '1')
    rare = head and (call('hget', meta, head) or ''):find(' C')
  end
  call('lrem', queue, '1', waiter)
  call('hdel', meta, waiter)
  call('zrem', timeout, waiter)
  if rare then
    local how, channel, tell = reach(head)
    if how then tell(how, channel, '0') end
  end
end

-- Offers the lock to the waiters in order. Returns true if the caller may take it; 'given' if one of our
-- waiters holds it now, instead of `former` (if that is not nil), whose hold has ended; false otherwise.
local function hand_over(caller, former)
  local place, pending = 0, false
  while true do
    local waiter = head
    if place > 0 then waiter = call('lindex', queue, place) end
    if not waiter or waiter == caller then return not pending end
    local listens, channel, tell = reach(waiter)
    local note = waiter == noted and notes[4] or call('hget', meta, waiter)
    -- A later release may say more behind these three.
    local heard_s, heard_us, patience = (note or ''):match('^(%d+) (%d+) ' .. span)
    if patience then
      if heard_s * 1000 + heard_us / 1000 + patience <= now then
        forget(waiter)
      elseif pending then
        return false
      elseif listens then
        patience = note:match(' C' .. span) or patience
        call('hdel', lock, waiter) -- a test: without the right to HDEL the script stops here, and not when two hold the lock
        local granted = grant(waiter, patience, '0')
        if former and former ~= waiter then call('hdel', lock, former) end
        forget(waiter)
        set_head(patience)
        tell(listens, channel, granted .. ' ' .. micros:sub(1, -4) .. ' ' .. patience)
        return 'given'
      else
        place = place + 1
      end
    else
      local evicted_at = call('zscore', timeout, waiter) or '0'
      local suspect, waking = 'suspect:' .. waiter, waiter .. ' ' .. evicted_at
      -- When it was first woken. That counts only while it is the head, where waking puts it. If it is
      -- found further back, it has acquired since, and has queued again, perhaps with the same score.
      local since = place == 0 and woken == waking and tonumber(call('hget', meta, 'since')) or 0
      if listens and pending then return false end
      if since + 3 * redisson_timeout < now or since > now then -- not woken, or long ago
        since = now
        if listens then
          call('hset', meta, 'woken', waking, 'since', now)
          prolong(0)
        else
          -- A Redisson waiter joins the queue before it listens. So one that does not listen is first
          -- noted as suspect, and counts as gone redisson_timeout later. A note with another score is
          -- of an earlier wait, and does not count.
          local seen, at = (call('hget', meta, suspect) or ''):match('(%S+) (%d+)')
          if seen ~= evicted_at or at + 0 > now then
            call('hset', meta, suspect, evicted_at .. ' ' .. now)
            prolong(0)
          else
            since = at
          end
        end
      end
      -- A Redisson waiter takes the lock itself, and only from the head of the list. If it was woken
      -- redisson_timeout ago and has not taken the lock, it is gone: its host has lost power, for
      -- example, which the server may not have noticed yet.
      if since + redisson_timeout <= now or not listens and evicted_at + 0 <= now then
        forget(waiter)
      elseif listens then
        -- It becomes the head. Our waiters that were before it and do not listen stay behind it. When
        -- it acquires, it will subtract one chain from every score, so theirs get one more.
        for ahead = 0, place - 1 do
          call('zincrby', timeout, chain, call('lindex', queue, ahead))
        end
        if place > 0 then
          call('lrem', queue, 1, waiter)
          call('lpush', queue, waiter)
          head = waiter
        end
        call('hdel', meta, suspect)
        tell(listens, channel, '0')
        return false
      else
        pending = true
        place = place + 1
      end
    end
  end
end
