-- Release, partial release, leaving the queue, and force-release.
--
-- ARGV  3 target: what is left of the hold, -1 to end whoever's hold it is
--       4 token of the hold, 0 to leave the queue and end a hold of id that it never learned of
--       5 lease, ms, for a partial release
-- Reply {1, target, now}  done (a repeated request finds it done)
--       {0, 0, now}       not held
--       {-2, 0, now}      void: came after its time

local token = ARGV[4]
local held = count and (token == '0' or token == last)

if held and target > 0 then
  extend_lease(ARGV[5])
  if tonumber(count) ~= target then call('hset', lock, id, target) end
  return {1, target, now}
end
if target < 0 then held = call('exists', lock) == 1 end

local done = held or (token ~= '0' and released == token)
if held then
  call('del', lock)
  if count then released = last end
elseif token == '0' and target == 0 then
  forget(id)
end
local free = held or call('exists', lock) == 0
local given = free and hand_over() == 'given' -- and with it the token released is stored
if held and count and not given then
  call('hset', meta, 'released', released)
  call('pexpire', meta, day)
end
return {done and 1 or 0, 0, now}
