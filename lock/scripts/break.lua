-- Ends somebody else's hold, or asks its holder to release it: for an operator. Linked only where
-- it is used.
--
-- ARGV  id     of the holder; * whoever it is
--       mode   -1 to end the hold, -2 to ask its holder
--       token  of the hold; none: whichever it is
-- Reply {1, 0, now}   ended; or the holder was sent the token, which asks it to release
--       {0, 0, now}   free, or another hold by now: nothing was done
--       {0, 1, now}   that hold, but its holder does not listen, or has no token: it cannot be asked
--       {-2, 0, now}  expired: the request came after its time
-- include common.lua

local hold = call('hgetall', lock)
local holder = hold[1]
local mine = holder and holder == call('hget', meta, 'holder') -- and `last` is its token
local named = holder and (id == '*' or id == holder) and (token == '' or (mine and token == last))
if mode == '-2' then
  local listens = false
  if named and mine then
    local channel = 'redisson_lock__channel' .. queue:sub(20) .. ':' .. holder
    listens = call('pubsub', 'numsub', channel)[2] > 0 and 'publish'
    if not listens then
      local shard = redis.pcall('pubsub', 'shardnumsub', channel)[2] -- nil: an error, before 7.0
      listens = shard and shard > 0 and 'spublish'
    end
    if listens then call(listens, channel, last) end
  end
  return {listens and 1 or 0, named and not listens and 1 or 0, now}
end
if named and #hold > 2 then call('del', lock) end -- several fields: no client makes that
local given = false
if head and (named or not holder) then
  -- include hand_over.lua
  if named then call('pexpire', lock, '1') end -- if this stops half-way, nobody holds the lock
  given = hand_over(nil, named and holder) == 'given'
end
-- Not `released`: the holder's own release is to find that the hold is lost.
if named and not given then call('del', lock) end
return {named and 1 or 0, 0, now}
