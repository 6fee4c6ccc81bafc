An invented future release that keeps the rules of lock/FORMAT.md: tests/compat/change.sh makes it.
What 1.x may add without a new major version: notes say more, grants say more, there is a message of
a kind that is not known yet, and fields more.

## lock/scripts/lock.lua
s/^call('hset', meta, id, time\[1\] .. ' ' .. time\[2\] .. ' ' .. mode)$/call('hset', meta, id, time[1] .. ' ' .. time[2] .. ' ' .. mode .. ' more words')/

## lock/scripts/hand_over.lua
s/^\( *\)call(listens, channel, granted .. .*patience)$/\1call(listens, channel, 'news')\n\1call(listens, channel, granted .. ' ' .. string.sub(micros, 1, -4) .. ' ' .. patience .. ' more')/

## lock/scripts/common.lua
s/'lease', known)/'lease', known, 'later', new)/
