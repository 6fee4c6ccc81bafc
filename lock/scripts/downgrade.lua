-- SPDX-License-Identifier: Apache-2.0
-- Turns a hold that is exclusive into a share, so that others may join, and nobody gets in between.
-- Linked only where it is used.
--
-- The share is that of another id: a late request of the exclusive hold, which lock.lua carries out,
-- would not know a field of its own id that is no count.
--
-- ARGV  1  id, expires, lease  of the share
--          mode                -n: the id that holds is that of the same client with the number n
--          token               of its hold
--       2  see share.lua
--       3  the token of an earlier share of id, if that is larger than that of the hold: the server has
--          become the master without it. 0: it is not
-- Reply {1, token, now}   shared (a repeated request finds it so, and renews it)
--       {-1, 0, now}      that hold is gone
--       {-2, 0, now}      expired: the request came after its time
-- include common.lua
-- include hand_over.lua
-- include share.lua

local newer = tonumber(ARGV[3]) or 0
if not alone and till > now and tonumber(of) > math.max(token, newer) then -- as in shared.lua
  local left = math.max(ttl, lease) + 172800000
  local noteless = call('pexpire', meta, left) == 0 -- as in shared.lua
  local at = end_of(lease)
  if at >= till then words = lease .. renews else at = till end
  if score then forget(id) end
  take_out()
  put(id, of, at, count, words, limit)
  call('hset', meta, 'limit', named())
  write()
  if noteless then call('pexpire', meta, left) end
  return {1, tonumber(of), now}
end
local from = id:gsub('%d+$', mode:sub(2))
-- Or a token that was written for id, by a request that was stopped before it did more.
local has = ttl ~= -2 and not shared and (last == token or call('hget', meta, 'holder') == id)
has = has and call('hget', lock, from)
if not has then return {-1, 0, now} end
if notes[5] then return {err = ('NEEDS ' .. notes[5]):sub(1, 99)} end
if newer > before then last = ARGV[3] end
changes = {from, token .. ' 0 0 0'}
enter(id, lease, '1', lease .. renews, limit)
call('hdel', lock, id) -- as in hand_over.lua: without the right to HDEL the script stops here, while the hold is as it was
write(from)
entered, changes = {}, {}
released = token -- not before its hold has gone: a script that stops must not let its release find it done
let_in()
if #entered > 0 then write() else call('hset', meta, 'released', released) end
return {1, tonumber(mine), now}
