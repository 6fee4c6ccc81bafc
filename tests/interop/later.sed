An invented future release that keeps the rules of lock/FORMAT.md: tests/interop/change.sh makes it.
What 1.x may add without a new major version: notes say more, grants say more, there is a message of
a kind that is not known yet, and fields more. A break and an ask say more.
Of what a lock may need it knows the word `later`.

## lock/scripts/lock.lua
s/^call('hset', meta, id, time\[1\] .. ' ' .. time\[2\] .. ' ' .. mode .. claim:gsub('C', ' C'))$/call('hset', meta, id, time[1] .. ' ' .. time[2] .. ' ' .. mode .. claim:gsub('C', ' C') .. ' more words')/

s/^\( *if last ~= '0' then call('hset', meta, 'released', released, 'ended', last .. ' ' .. micros\)) end$/\1 .. ' more') end/

s/^local barred = not (count or score) and /&notes[5] ~= 'later' and /

## lock/scripts/shared.lua
s/^elseif notes\[5\] and /&notes[5] ~= 'later' and /

## lock/scripts/break.lua
s/ .. said)/ .. said .. ' more')/

## lock/scripts/hand_over.lua
s/^\( *\)tell(listens, channel, granted .. .*patience)$/\1call(listens, channel, 'news')\n\1call(listens, channel, granted .. ' ' .. string.sub(micros, 1, -4) .. ' ' .. patience .. ' more')/

## lock/scripts/common.lua
s/'lease', known)/'lease', known, 'later', new)/
