-- Release, and leaving the queue.
--
-- ARGV  mode   0
--       token  of the hold; none to leave the queue, and to end a hold that id never learned of
-- Reply {1, 0, now}   done (a repeated request finds it done)
--       {0, 0, now}   not held
--       {-2, 0, now}  expired: the request came after its time
-- include common.lua

local count = call('hget', lock, id)
local held = count and (token == '' or token == last)
local done = held or (token ~= '' and released == token)
if held then released = last end
local given = false
if head then
  -- include hand_over.lua
  -- The key stays for the next owner, but if this stops half-way, nobody holds the lock.
  if held then call('pexpire', lock, '1') end
  if token == '' and not held then forget(id) end
  local free = held or call('pttl', lock) == -2
  given = free and hand_over(nil, held and id) == 'given' -- which stores `released`, too
end
if held and not given then
  call('del', lock)
  if last ~= '0' then call('hset', meta, 'released', released) end
end
return {done and 1 or 0, 0, now}
