-- SPDX-License-Identifier: Apache-2.0
-- Acquire, re-entry, release of one level, a waiter's heartbeat, the confirmation of a grant, and
-- renewal; and, if the lease is 0, release and leave. It is one script, so that a server knows all of
-- it or nothing.
--
-- With a lease:
-- ARGV  mode   0 try; -n only if held, and then n times; else wait in the queue, with this waiter
--              timeout, ms: a waiter that is not heard from for this long is dead
--       token  of the hold (mode -n), or of an earlier hold that id gave up and that may still exist
-- Reply {1, token, now}   held
--       {0, ttl, now}     not now; the lock's ttl if id tries, is first in line, or has just handed the
--                         lock on to another waiter; else -1
--       {-1, 0, now}      the hold that the caller believes in is gone
--       {-2, 0, now}      expired: the request came after its time
--       the error NEEDS   a later release uses the lock in a way that is not known here
--
-- Without one:
-- ARGV  mode   0
--       token  of the hold; none to leave the queue, and to end a hold that id never learned of
-- Reply {1, 0, now}   done (a repeated request finds it done)
--       {0, 0, now}   not held
--       {-2, 0, now}  expired: the request came after its time
-- include common.lua

local ends = lease == '0' -- a release, or leaving the queue
local ttl = not ends and math.min(call('pttl', lock), 1e15) -- somebody else may have set one that is too large for our numbers
local count = ttl ~= -2 and call('hget', lock, id)
local barred = not (count or score) and notes[5] -- what it needs, as it neither holds nor waits
local held
local free = ends and not barred -- or may be handed over

if ends then
  held = count and (token == '' or token == last)
  if held then released = last end
else
  local times = mode:match('^-(.*)') -- nil: not only if held
  local earlier = tonumber(token) or 0

  -- What of id's hold there is:
  --   in the lock   mode   token, of the request           hold
  --   no            -n     any                             gone
  --   yes           -n     not the newest                  gone
  --   yes           -n     the newest                      goes on
  --   yes           other  older than the newest, or none  goes on: this request has come before
  --   yes           other  the newest, or a later one      given up, and not taken again: its token
  --                        has been used, and its release may still come. So is an older hold that a
  --                        fail-over has brought back, and one whose token was evicted
  -- Not in the lock, and another mode: id wants a first one.
  local given_up = count and not times and not (before > earlier and before < 2 ^ 53)
  local goes_on = count and not given_up and (token == last or not times)

  if given_up then
    released = last
    call('hset', meta, 'released', released)
    prolong(0)
    ttl = -2
  elseif goes_on then
    -- Only the first confirmation of a grant may shorten the lease. It names the token, so it cannot be
    -- confused with a late request of an earlier wait. Other requests may be late: of an earlier hold,
    -- or from before a re-entry.
    local confirms = count == '0' and times
    if confirms or ttl <= lease + 0 then
      call('pexpire', lock, lease)
      ttl = lease
    end
    local changes = times and count ~= times -- who only asks again does not take back a re-entry
    -- This always writes, because WAIT waits for the last write. Notes last longer than a lease of up
    -- to seven digits, because the grant has prolonged them.
    if changes then
      call('hset', meta, 'lease', last .. (ttl == lease and ' ' .. lease .. renews or ''))
    end
    if not changes or #lease > 7 then call('pexpire', meta, ttl + 172800000) end
    set_head(ttl)
    if changes then call('hset', lock, id, times) end
    return {1, before, now}
  elseif times then -- gone
    return {-1, 0, now}
  end
  if barred then return {err = ('NEEDS ' .. barred):sub(1, 99)} end
  -- This server has become the master without the newest token, and perhaps without other notes. The 0
  -- makes them stale.
  if earlier > before then last, before = '0' .. token, earlier end

  free = ttl == -2
  if free and not head then return {1, grant(id, lease, '1') + 0, now} end
end

local given = false
if head and free then
  -- include hand_over.lua
  if ends then
    -- The key stays for the next owner, and expires at once if the script stops half-way.
    if held then call('pexpire', lock, '1') end
    if token == '' and not held then forget(id) end
    local may = held or call('pttl', lock) == -2
    given = may and hand_over(nil, held and id) == 'given' -- which stores `released`, too
  else
    given = hand_over(id, count and id)
    if given == true then
      token = grant(id, lease, '1')
      forget(id)
      set_head(lease)
      return {1, token + 0, now}
    end
    if given then ttl = call('pttl', lock) elseif count then call('del', lock) end
  end
end

if ends then
  if held and not given then
    call('del', lock)
    if last ~= '0' then call('hset', meta, 'released', released, 'ended', last .. ' ' .. micros) end
  end
  return {(held or token ~= '' and released == token) and 1 or 0, 0, now}
end

-- The waiter that was woken has come, so `woken` goes: it may wait again with the same score.
if woken and not free then
  call('zscore', timeout, id) -- each key is read before any is written
  call('hdel', meta, 'woken')
end
if mode == '0' then return {0, ttl, now} end

-- A note from the current hundred seconds shows that the place in the queue has been checked in
-- them: the note is written last.
local old = not score or (notes[4] or ''):sub(1, 8) ~= micros:sub(1, 8)
if old then
  local ahead = score and (call('lpos', queue, id, 'MAXLEN', 1000) or call('lindex', queue, 1000) and 1000)
  if not ahead then call('zadd', timeout, 'XX', 0, id) end -- changes nothing; if refused, leaves no entry without score
  -- A place has a note from the beginning. If the script stops half-way, a new one is that of a dead waiter.
  call('hset', meta, id, notes[4] or '0 0 ' .. mode)
  prolong(0)
  ahead = ahead or call('rpush', queue, id) - 1
  call('zadd', timeout, 'GT', now + math.max(ttl, 0) + (ahead + 1) * chain, id)
  -- If all waiters vanish, what they leave behind expires after a fortnight: no lease is longer.
  call('pexpire', queue, '1209600000')
  call('pexpire', timeout, '1209600000')
end
call('hset', meta, id, time[1] .. ' ' .. time[2] .. ' ' .. mode .. claim:gsub('C', ' C'))
-- The first in line may be dead, too. So who has handed the lock on asks when that claim ends.
if head and head ~= id and not given then ttl = -1 end
return {0, ttl, now}
