-- Release, leaving the queue, and force-release.
--
-- ARGV  mode   0, or -1 to end the hold, whoever has it
--       token  of the hold; none to leave the queue, and to end a hold that id never learned of
-- Reply {1, 0, now}   done (a repeated request finds it done)
--       {0, 0, now}   not held
--       {-2, 0, now}  expired: the request came after its time
-- include common.lua

local count = call('hget', lock, id)
local held = count and (token == '' or token == last)
if mode ~= '0' then held = call('exists', lock) == 1 end
local done = held or (token ~= '' and released == token)
if held then
  call('del', lock)
  if count then released = last end
end
local given = false
if head then
  -- include hand_over.lua
  if token == '' and mode == '0' and not held then forget(id, id) end
  local free = held or call('exists', lock) == 0
  given = free and hand_over() == 'given' -- which stores `released`, too
end
if held and count and last ~= '0' and not given then call('hset', meta, 'released', released) end
return {done and 1 or 0, 0, now}
