-- SPDX-License-Identifier: Apache-2.0
-- What lock.lua is, for a handle that shares.
--
-- ARGV  1 as lock.lua's; 2 see share.lua
-- Reply as lock.lua's, and
--       {0, ttl, now}      not now, because as many hold as may: if id tries or is first in line, how
--                          long until the first of their leases ends, or of the limits that bind it
-- include common.lua
-- include hand_over.lua
-- include share.lua

local ending = lease == '0' -- a release, or leaving the queue
local keeps = mode:match('^-(.*)') -- how many times
local earlier = tonumber(token) or 0
local number = tonumber(of) or 0
local lives = own and till > now
local goes_on = not ending and lives and (keeps and of == token or not keeps and number > earlier and number < 2 ^ 53)
-- Holding on, and ending, need no memory: what is written first would be refused for lack of it.
local function keep_notes()
  return call('pexpire', meta, math.max(ttl, lease) + 172800000)
end
local noteless = (ending or goes_on) and keep_notes() == 0 -- they were evicted
if goes_on then
  -- Only the first confirmation may shorten the lease, as in lock.lua.
  local confirms, at = count == '0' and keeps, end_of(lease)
  if confirms or at >= till then words = lease .. renews else at = till end
  if score then forget(id) end -- whoever let it in was stopped before
  if not alone then take_out() end
  put(id, of, at, keeps or count, words, limit)
  call('hset', meta, 'limit', named())
  if alone then -- only the notes say its token, until others get theirs
    write()
    changes = {}
  end
  if head and (alone or confirms) then let_in() end
  write()
  if noteless then keep_notes() end
  return {1, number, now}
elseif keeps then
  return {-1, 0, now}
elseif notes[5] and not lives and not score then -- as in lock.lua
  return ending and {released == token and 1 or 0, 0, now} or {err = ('NEEDS ' .. notes[5]):sub(1, 99)}
end

local held_before = lives and (not ending or token == '' or of == token)
if held_before then
  released = of
  take_out()
  changes = {id, of .. ' 0 0 0'}
end
if earlier > before and not ending then last = '0' .. token end
if ending and token == '' and (score or not held_before) then forget(id) end

local open = ttl == -2 or shared or held_before -- else somebody holds it exclusively
if open then let_in(not ending and id) end
local given

if #entered > 0 or shared and held > 0 then
  if #entered > 0 or held_before then write(held_before and not mine and id) end
elseif open then
  -- The key stays for the next owner, but if this stops half-way, nobody holds the lock.
  if ttl ~= -2 then
    call('pexpire', lock, '1')
    ttl = 1
    clean(true)
  end
  given = head and hand_over(not ending and id, own and id)
  if given == true and not ending then
    if ttl ~= -2 then ttl = call('pttl', lock) end -- it may have had no field but those
    changes = {}
    enter(id, lease, '1', lease .. renews, limit)
    write()
    changes, entered = {}, {}
    let_in()
    if #entered > 0 then write() end
  elseif given == 'given' then
    ttl = call('pttl', lock)
  else
    if held_before and last ~= '0' then call('hset', meta, 'released', released, 'ended', of .. ' ' .. micros) end
    if ttl ~= -2 then call('del', lock) end
  end
end

if ending then
  return {(held_before or token ~= '' and released == token) and 1 or 0, 0, now}
end
if mine then return {1, tonumber(mine), now} end

-- The waiter that was woken has come, and may wait again with the same score.
if woken and (held > 0 or not open) then
  call('zscore', timeout, id) -- each key is read before any is written
  call('hdel', meta, 'woken')
end
local wait = ttl
if full(limit) then
  local first = math.huge
  for at, holders in pairs(ends) do
    if holders > 0 then first = math.min(first, at) end
  end
  for bound, when in pairs(limits) do
    if bound <= held then first = math.min(first, when) end
  end
  wait = first - now
end
if mode == '0' then return {0, wait, now} end

-- When one that wants the lock exclusively leaves, a script that knows no shares tells nobody behind it. So
-- the first of those asks often: each 200 ms with a waiter timeout of 5 s, and seldom on a slow network.
local first = stopped and next_sharer(stopped)
local near = stopped and (first == id or first == false and not score) -- or queues now, behind them

-- As in lock.lua.
local old = not score or (notes[4] or ''):sub(1, 8) ~= micros:sub(1, 8)
if old then
  local ahead = score and (call('lpos', queue, id, 'MAXLEN', 1000) or call('lindex', queue, 1000) and 1000)
  if not ahead then call('zadd', timeout, 'XX', 0, id) end
  call('hset', meta, id, notes[4] or '0 0 ' .. mode)
  prolong(0)
  ahead = ahead or call('rpush', queue, id) - 1
  call('zadd', timeout, 'GT', now + math.max(ttl, 0) + (ahead + 1) * chain, id)
  call('pexpire', queue, '1209600000')
  call('pexpire', timeout, '1209600000')
end
call('hset', meta, id, time[1] .. ' ' .. time[2] .. ' ' .. mode .. ' S' .. ARGV[2] .. claim:gsub('C', ' C'))
if near then wait = mode / 25 elseif head and head ~= id and not given and #entered == 0 then wait = -1 end
return {0, wait, now}
