-- SPDX-License-Identifier: Apache-2.0
-- Ends somebody else's hold, or asks its holder to release it: for an operator. Linked only where
-- it is used.
--
-- ARGV  id     of the holder; * whoever it is: of a lock that is shared, all of them
--       mode   -1 to end the hold, -2 to ask its holder
--       token  of the hold; none: whichever it is
--       and, as a second argument, who does it and why, with a space before it; or nothing
-- Reply {1, 0, now}   ended; or the holder was sent the token, which asks it to release
--       {0, 0, now}   free, or another hold by now: nothing was done
--       {0, 1, now}   that hold, but its holder does not listen, or has no token: it cannot be asked
--       {-2, 0, now}  expired: the request came after its time
--       the error NEEDS, as in lock.lua
-- include common.lua
if notes[5] then return {err = ('NEEDS ' .. notes[5]):sub(1, 99)} end

local function listens(waiter)
  local channel = 'redisson_lock__channel' .. queue:sub(20) .. ':' .. waiter
  local how = call('pubsub', 'numsub', channel)[2] > 0 and 'publish'
  if not how then
    local shard = redis.pcall('pubsub', 'shardnumsub', channel)[2] -- nil: an error, before 7.0
    how = shard and shard > 0 and 'spublish'
  end
  return how, channel
end

-- Those who waited, or held, are to ask; and people are to find who did it. When nothing is left to be done: so
-- a refusal does no harm.
local said = ARGV[2] or ''
local broken -- the newest of the tokens whose holds end
local function tell(ids)
  if broken and notes[1] then redis.pcall('hset', meta, 'broken', broken .. ' ' .. now .. said) end
  for _, told in ipairs(ids) do
    local how, channel = listens(told)
    if how then redis.pcall(how, channel, '0' .. said) end
  end
end

-- Those who share are described in share.lua; a single holder may be exclusive. A later release may let one
-- count several times: w and how many, behind its lease.
local hold = call('hgetall', lock)
local newest = call('hget', meta, 'holder') -- and `last` is its token
local all = id == '*' and token == ''
local named, counts, latest = {}, {}, 0
for at = 1, #hold, 2 do
  local holder, of, ends = hold[at], hold[at + 1]:match('^(%d+) (%d+) ')
  local mine = of or holder == newest and last
  if holder == 'shared' or ends and (tonumber(ends) <= now or tonumber(ends) >= now + 2e9) then
    -- the count, or no hold any more
  elseif (id == '*' or id == holder) and (token == '' or token == mine) and (all or not named[1]) then
    named[#named + 1] = holder
    named[holder] = mine
    if (tonumber(mine) or 0) > (tonumber(broken) or 0) then broken = mine end
  else
    counts[ends or 0] = (counts[ends or 0] or 0) + (hold[at + 1]:match(' w(%d+)%f[ %z]') or 1)
    latest = math.max(latest, tonumber(ends) or math.huge)
  end
end
table.sort(named) -- not as this server happens to store them
if mode == '-2' then
  local asked = 0
  for _, holder in ipairs(named) do
    local how, channel = listens(holder)
    if how and named[holder] then
      call(how, channel, named[holder] .. said)
      asked = 1
    end
  end
  return {asked, named[1] and asked == 0 and 1 or 0, now}
end
if latest > 0 and not named[1] then return {0, 0, now} end -- another hold
if latest > 0 and latest < math.huge then -- the others go on
  local words = {}
  for ends, holders in pairs(counts) do
    words[#words + 1] = ends .. ' ' .. holders
  end
  call('pexpire', meta, latest - now + 172800000) -- lack of memory would stop HSET if it came first
  call('hset', lock, named[1], '0 0 0 0', 'shared', table.concat(words, ' '))
  call('hdel', lock, named[1])
  local left = call('pttl', lock)
  if left < 0 or now + left > latest then call('pexpire', lock, latest - now) end
  set_head(latest - now)
  named[2] = head or nil
  tell(named)
  return {1, 0, now}
end
local given = false
if head and (named[1] or not hold[1]) then
  -- include hand_over.lua
  if named[1] then call('pexpire', lock, '1') end -- if this stops half-way, nobody holds the lock
  for at = 1, #hold, 2 do -- the key stays for the next owner
    if hold[at] ~= named[1] then call('hdel', lock, hold[at]) end
  end
  given = hand_over(nil, named[1]) == 'given'
end
-- Not `released`: the holder's own release is to find that the hold is lost.
if named[1] and not given then call('del', lock) end
tell(named)
return {named[1] and 1 or 0, 0, now}
