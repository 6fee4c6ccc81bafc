-- Who holds a lock, and who waits. Changes nothing. Stands alone, without common.lua.
--
-- KEYS  as in common.lua
-- Reply {ttl, token, kind, hold count, waiters, holder, (kind, condition, waiter) for each waiter}
--   kind       of the holder, a sum: 1 ours; 2 it listens; 4 it renews its lease; 8 * the lease, ms.
--              A lease of 0 is not known. Of a waiter: 2 ours, of a later release: its note cannot be
--              read, and how long it may be silent is unknown; 1 ours; 0 Redisson's
--   condition  2 listens; 1 silent, but in time, or of kind 2; 0 dead
--   holder     empty, and kind and hold count 0, when the lock is free; hold count 0 beside a holder:
--              it was handed the lock and has not confirmed it yet

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
local notes = call('hmget', meta, 'token', 'holder', 'lease')
local waiters = call('lrange', queue, 0, -1)
local holder = hold[1] or ''
local holder_kind, token = 0, 0
if holder ~= '' and holder == notes[2] then
  holder_kind, token = 1, number(notes[1])
  local of, lease, renews = (notes[3] or ''):match('^(%d+) (%d+)(%+?)$')
  if of == notes[1] and tonumber(lease) < 2 ^ 32 then holder_kind = holder_kind + 8 * lease + 4 * #renews end
  if listens(holder) then holder_kind = holder_kind + 2 end
end
local reply = {math.min(call('pttl', lock), 1e15), token, holder_kind, tonumber(hold[2]) or 0, #waiters, holder}
for _, waiter in ipairs(waiters) do
  local note = call('hget', meta, waiter)
  local kind, limit = 2, math.huge
  local heard_s, heard_us, patience = (note or ''):match('^(%d+) (%d+) ([1-9]%d%d%d%d?%d?)%f[ %z]')
  if patience then
    kind, limit = 1, heard_s * 1000 + heard_us / 1000 + patience
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
