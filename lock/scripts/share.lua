-- SPDX-License-Identifier: Apache-2.0
-- What shared.lua and downgrade.lua take in, behind common.lua and hand_over.lua.
--
-- KEYS  as in common.lua. The lock hash of a lock that is shared has a field for each holder:
--         id -> token ends count lease
--           token   its fencing token
--           ends    when its lease ends, ms of the server's clock
--           count   its hold count; 0: it was let in, and has not confirmed that yet
--           lease   ms, and a + if it is renewed; 0 if it was let in. A later release may say more
--       and one that counts them, always written together with theirs:
--         shared -> ends holders, for each end, in any order
--       The TTL is that of the holder whose lease ends last, so who does not know of sharing sees how
--       long the lock is held. A hash without the field `shared` has one holder, which is exclusive.
--       The notes have one field more:
--         limit -> pairs, limit until, the smallest limit first: each is in use until then
-- ARGV  1 as in common.lua
--       2 how many may share the lock, id included; 0: any number
--
-- A shared waiter's note has a fourth word, S and its limit.
--
-- Ends are rounded up, by a sixteenth of the lease at most, so that a thousand holders have few of
-- them: no request has to look at all holders.
--
-- What the scripts that do not know of sharing do is enough where the lock is free: they hand it to a
-- shared waiter as to any other, exclusively. Its next request turns that into a share, and lets others in.

local most = 3 -- enter in one script: the requests of these let in more

local ttl = math.min(call('pttl', lock), 1e15)
local fields = ttl ~= -2 and call('hmget', lock, id, 'shared') or {}
local own, shared = fields[1], fields[2]
local of, till, count, words = (own or ''):match('^(%d+) (%d+) (%d+) (%S+)')
local alone = own and not of and not shared -- handed over by a script that knows no shares, or held by such a client
if alone then
  of, till, count, words = last:match('^%d+$') or '0', now + (ttl < 0 and lease or math.min(ttl, 1e9)), own:match('^%d+$') or '1', lease .. renews
end

-- Returns a time as a number, or false: it has passed, or is so far away (23 days) that no client of this
-- format has written it, and Redis might refuse it.
local function coming(text)
  local at = tonumber(text) or 0
  return at > now and at < now + 2e9 and at
end
till = coming(till) or 0

local ends, held = {}, 0 -- how many leases end when; how many hold
for at, holders in (shared or ''):gmatch('(%d+) (%d+)') do
  at = coming(at)
  if at then
    ends[at] = (ends[at] or 0) + holders
    held = held + holders
  end
end

-- The limits in use. Whoever is let in names its own until its lease ends, and finds fewer holders than each of
-- them. Where nobody else shares, none is left from before.
local function limit_of(text)
  local number = tonumber(text) or 0
  return number > 0 and number < 1e9 and number or math.huge
end
local limit, least, limits = limit_of(ARGV[2]), math.huge, {} -- id's; the smallest of all; until when each is in use
local function name(bound, when)
  if held == 0 then least, limits = math.huge, {} end
  if bound < math.huge then
    least = math.min(least, bound)
    limits[bound] = math.max(limits[bound] or when, when)
  end
end
for bound, when in (call('hget', meta, 'limit') or ''):gmatch('(%d+) (%d+)') do
  when = coming(when)
  if when then name(limit_of(bound), when) end
end

local function named()
  local listed = {}
  for bound in pairs(limits) do listed[#listed + 1] = bound end
  table.sort(listed)
  for nth, bound in ipairs(listed) do listed[nth] = bound .. ' ' .. limits[bound] end
  return table.concat(listed, ' ')
end

-- True if nobody with this limit may enter.
local function full(bound)
  return held >= math.min(bound, least)
end

-- Returns the first waiter that is to share and is not dead, of nine from this place on; false: there is none,
-- and nobody waits behind the nine; nil: there is none, but others wait behind them.
local function next_sharer(place)
  for at = place, place + 8 do
    local waiter = call('lindex', queue, at)
    if not waiter then return false end
    local heard_s, heard_us, patience = (call('hget', meta, waiter) or ''):match('^(%d+) (%d+) (%d+) S')
    if patience and (waiter == id or heard_s * 1000 + heard_us / 1000 + patience > now) then return waiter end
  end
end

local changes = {} -- fields of the lock hash, to be written together
local entered = {} -- those who are let in: id, how and where they listen, what they are told, and what publishes so
local mine -- the token, if that is id
local sleeper -- who that is, if it is Redisson's, how and where it listens, and what publishes so
local stopped -- the place of who wants the lock exclusively, or is not known, and listens
local stale = last:sub(1, -10) ~= micros:sub(1, -10)

local function put(owner, granted, at, holds, words, bound)
  name(bound, at)
  ends[at] = (ends[at] or 0) + 1
  held = held + 1
  changes[#changes + 1] = owner
  changes[#changes + 1] = granted .. ' ' .. at .. ' ' .. holds .. ' ' .. words
end

-- Takes id's share out of the count. Its field stays until that is written.
local function take_out()
  if ends[till] then
    ends[till] = ends[till] - 1
    held = held - 1
  end
end

local function end_of(duration)
  local _, exponent = math.frexp(duration)
  local step = math.max(2 ^ (exponent - 5), 1)
  return math.ceil((now + duration) / step) * step
end

-- Lets owner in, with the next token, as grant() of common.lua does.
local function enter(owner, duration, holds, words, bound, listens, channel, tell)
  local newest = tonumber(last) or 0
  last = newest >= tonumber(micros) and newest < 2 ^ 53 and ('%.0f'):format(newest + 1) or micros
  if owner == id then mine = last end
  put(owner, last, end_of(duration), holds, words, bound)
  entered[#entered + 1] = {owner, listens, channel, last .. ' ' .. now .. ' ' .. duration, tell}
end

-- Lets in those first in line, and caller in its turn: at the end if it does not wait. True when
-- nobody stops those behind.
local function let_in(caller)
  local place, pending = 0, false
  while #entered < most do
    local waiter = head
    if place > 0 then waiter = call('lindex', queue, place) end
    if caller and (not waiter or waiter == caller) then
      if pending or full(limit) then return end
      enter(caller, lease, '1', lease .. renews, limit)
      caller = nil
      place = place + 1
    elseif not waiter then
      return
    else
      local listens, channel, tell = reach(waiter)
      local note = waiter == noted and notes[4] or call('hget', meta, waiter)
      local heard_s, heard_us, patience = (note or ''):match('^(%d+) (%d+) ' .. span)
      local room = (note or ''):match('^%d+ %d+ %d+ S(%d+)%f[ %z]')
      local bound = limit_of(room)
      if patience and heard_s * 1000 + heard_us / 1000 + patience <= now then
        -- The server may have stalled, or have a new master: who cannot enter yet may still be back.
        if held >= least then return end
        forget(waiter)
      elseif listens and (pending or not room or full(bound)) then
        if not room then stopped = place - #entered end -- these leave the queue
        if not patience then sleeper = {waiter, listens, channel, tell} end
        return -- who wants it exclusively stops all behind; so does who may still come
      elseif listens then
        if coming((call('hget', lock, waiter) or ''):match('^%d+ (%d+) ')) then -- a script that was stopped has left it in the queue
          forget(waiter)
        else
          enter(waiter, note:match(' C' .. span) or patience, '0', '0', bound, listens, channel, tell)
          place = place + 1
        end
      elseif patience then
        place = place + 1
      elseif held == 0 then
        return -- hand_over() knows how to wake it
      else
        -- As in hand_over.lua: one that does not listen is gone 5 s after that was first seen.
        local evicted_at, suspect = call('zscore', timeout, waiter) or '0', 'suspect:' .. waiter
        local seen, since = (call('hget', meta, suspect) or ''):match('(%S+) (%d+)')
        if seen ~= evicted_at or tonumber(since) > now then
          call('hset', meta, suspect, evicted_at .. ' ' .. now)
          prolong(0)
          since = now
        end
        if since + redisson_timeout <= now or tonumber(evicted_at) <= now then
          forget(waiter)
        else
          pending = true
          place = place + 1
        end
      end
    end
  end
end

-- Takes the fields of those whose leases have ended out of the hash, and of all others but id.
local function clean(all)
  local fields, gone = call('hgetall', lock), {}
  for at = 1, #fields, 2 do
    local ends = fields[at + 1]:match('^%d+ (%d+) ')
    local ended = ends and fields[at] ~= 'shared' and not coming(ends)
    if fields[at] ~= id and (all or ended) then gone[#gone + 1] = fields[at] end
  end
  for at = 1, #gone, 1000 do
    call('hdel', lock, unpack(gone, at, math.min(at + 999, #gone)))
  end
end

-- Writes what has changed, and tells those who were let in. No hold may outlast the TTL, which is
-- made longer before, and shorter after. `gone`: the field that goes.
local function write(gone)
  local counts, latest = {}, 0
  for at, holders in pairs(ends) do
    if holders > 0 then
      counts[#counts + 1] = at .. ' ' .. holders
      latest = math.max(latest, at)
    end
  end
  local rest = latest - now
  local crowded = #entered > 0 and ttl ~= -2 and call('hlen', lock) > 2 * held + 16
  if #entered > 0 then
    call('hset', meta, 'token', last, 'holder', entered[#entered][1], 'released', released, 'lease', last, 'limit', named())
    if stale or rest > 9999999 then prolong(rest) end
    -- Deletes the notes that no longer count, as grant() of common.lua does.
    for at, field in ipairs(stale and call('hgetall', meta) or {}) do
      if at % 2 == 1 and field:find(head and '^suspect:' or ':') then call('hdel', meta, field) end
    end
  elseif gone and last ~= '0' then
    call('hset', meta, 'released', released)
  end
  changes[#changes + 1] = 'shared'
  changes[#changes + 1] = table.concat(counts, ' ')
  if ttl ~= -2 and rest > ttl then call('pexpire', lock, rest) end
  call('hset', lock, unpack(changes))
  if gone then call('hdel', lock, gone) end
  if ttl == -2 and redis.pcall('pexpire', lock, rest) ~= 1 then
    call('del', lock)
    call('pexpire', lock, rest) -- refused again: the script ends with that error
  end
  if rest < ttl then call('pexpire', lock, rest) end
  if crowded then clean() end -- last, as it may take all fields that were there before
  for _, waiter in ipairs(entered) do
    local owner, listens, channel, message, tell = unpack(waiter)
    if head then forget(owner) end
    if listens then tell(listens, channel, message) end
  end
  set_head(rest)
  -- Redisson sleeps for as long as it was told when it asked: for more than that, if it was not the first.
  if sleeper and sleeper[1] == head and (rest + 1000 < ttl or #entered > 0) then sleeper[4](sleeper[2], sleeper[3], '0') end
  ttl = rest
end
