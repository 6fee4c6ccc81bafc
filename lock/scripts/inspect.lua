-- SPDX-License-Identifier: Apache-2.0
-- Who holds a lock, and who waits. Changes nothing. Stands alone, without common.lua.
--
-- KEYS  as in common.lua
-- Reply {waiters + 2^32 * holders, (rest, token, count + 2^16 * limit + 2^48 * needs, kind, holder) for each
--       holder, (kind, condition, waiter) for each waiter}
--   holders    at least 1: a free lock has one, see below. That whose lease ends last comes first
--   rest       what is left of the lease, ms; -1: it has no end
--   count      0 beside a holder: it was handed the lock and has not confirmed it yet
--   limit      the smallest in use, and 1; 1: none is; 0: exclusive
--   needs      1: the notes have that field, so ours neither acquire nor break it
--   kind       of the holder, a sum: 1 ours; 2 it listens; 4 it renews its lease; 8 * the lease, ms.
--              A lease of 0 is not known. Of a waiter: 2 ours, of a later release: its note cannot be
--              read, and how long it may be silent is unknown; 1 ours; 0 Redisson's; and 4 if it shares
--   holder     where several limits are in use, the nine smallest stand before the first one, a space behind each
-- Of a free lock, rest is -2, and the others tell of the last hold that had a token:
--   token      0: nobody's is known
--   count      how it ended: 2 broken; 1 released; 0 neither, so its lease ran out, or its key was deleted; and
--              2^48 * needs
--   kind       for how long it, or those beside it that were shared, lasted, ms; -1: not known
--   holder     its id; and, if it was broken with words, a space and these
--   condition  2 listens; 1 silent, but in time, or of kind 2; 0 dead

local lock, queue, timeout, meta = unpack(KEYS)
local call = redis.call
local time = call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function listens(waiter)
  local channel = 'redisson_lock__channel' .. queue:sub(20) .. ':' .. waiter
  if call('pubsub', 'numsub', channel)[2] > 0 then return true end
  local shard = redis.pcall('pubsub', 'shardnumsub', channel)[2] -- nil: an error, before 7.0
  return shard and shard > 0
end

-- Values that no client of this format writes become 0, not known: a client might not read them exactly.
local function number(text)
  local value = tonumber((text or ''):match('^%d+$')) or 0
  return value < 2 ^ 53 and value or 0
end

local hold = call('hgetall', lock)
local notes = call('hmget', meta, 'token', 'holder', 'lease', 'limit', 'needs', 'released', 'ended', 'broken')
local waiters = call('lrange', queue, 0, -1)
local rest = math.min(call('pttl', lock), 1e15)
local limits, holders = {}, {}
for limit, ends in (notes[4] or ''):gmatch('(%d+) (%d+)') do
  limit, ends = number(limit), number(ends)
  if limit > 0 and limit < 1e9 and ends > now and ends < now + 2e9 then limits[#limits + 1] = limit end
end
table.sort(limits)
for at = 1, #hold, 2 do
  local holder, value = hold[at], hold[at + 1]
  local token, ends, count, lease, renews = value:match('^(%d+) (%d+) (%d+) (%d+)(%+?)%f[ %z]')
  if token then -- see share.lua
    if number(ends) > now and number(ends) < now + 2e9 then
      holders[#holders + 1] = {number(ends) - now, token, number(count) % 2 ^ 16 + 2 ^ 16 * ((limits[1] or 0) + 1), lease, renews, holder}
    end
  elseif holder ~= 'shared' and not holders[1] then
    local of, lease, renews = (notes[3] or ''):match('^(%d+) (%d+)(%+?)%f[ %z]')
    if of ~= notes[1] then lease, renews = '', '' end
    local ours = holder == notes[2]
    holders[1] = {rest, ours and notes[1], number(value) % 2 ^ 16, ours and lease, renews, holder}
  end
end
table.sort(holders, function(a, b) return a[1] > b[1] or a[1] == b[1] and a[6] < b[6] end)
local needs = notes[5] and 2 ^ 48 or 0
local reply = {#waiters + 2 ^ 32 * math.max(#holders, 1)}
if not holders[1] then
  local token, how, id = number(notes[1]), notes[6] == notes[1] and 1 or 0, (notes[2] or ''):match('^%S+$')
  local lasted = -1 -- us
  local function take(text, unit, ending)
    local of, at, words = (text or ''):match('^(%d+) (%d+) ?(.*)$')
    local later = number(at) * unit - token
    if of == notes[1] then later = math.max(later, 0) end -- a token may be ahead of the clock
    if later > lasted then
      lasted, how = later, ending
      if words ~= '' then id = id .. ' ' .. words end
    end
  end
  if token > 0 and id then
    take(notes[7], 1, 1)
    take(notes[8], 1000, 2)
  else
    token, how, id = 0, 0, ''
  end
  reply = {reply[1], -2, token, how + needs, math.floor(lasted / 1000), id}
end
for _, holder in ipairs(holders) do
  local rest, token, count, lease, renews, id = unpack(holder)
  local kind = 0
  if token then
    kind = listens(id) and 3 or 1
    if number(lease) > 0 and number(lease) < 2 ^ 32 then kind = kind + 8 * lease + 4 * #renews end
  end
  for _, value in ipairs({rest, number(token), count + needs, kind, id}) do
    reply[#reply + 1] = value
  end
end
if limits[2] and holders[1] and holders[1][3] >= 2 ^ 16 then
  reply[6] = table.concat(limits, ' ', 1, math.min(#limits, 9)) .. ' ' .. reply[6]
end
for _, waiter in ipairs(waiters) do
  local note = call('hget', meta, waiter)
  local kind, limit = 2, math.huge
  local heard_s, heard_us, patience = (note or ''):match('^(%d+) (%d+) ([1-9]%d%d%d%d?%d?%d?%d?%d?)%f[ %z]')
  if patience then
    kind, limit = 1, heard_s * 1000 + heard_us / 1000 + patience
    if note:find('^%d+ %d+ %d+ S%d+%f[ %z]') then kind = 5 end
  elseif not note then
    kind, limit = 0, tonumber(call('zscore', timeout, waiter) or 0)
  end
  local condition = 0
  if limit > now then condition = listens(waiter) and 2 or 1 end
  reply[#reply + 1] = kind
  reply[#reply + 1] = condition
  reply[#reply + 1] = waiter
end
return reply
