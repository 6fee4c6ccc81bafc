Another invented release, which breaks a rule of lock/FORMAT.md: a note of its begins with a word
that no other release knows. Nothing but that: what it is for is to see how others treat a waiter
whose note they cannot read. tests/interop/change.sh makes it.

## lock/scripts/lock.lua
s/^call('hset', meta, id, time\[1\]/call('hset', meta, id, 'L2 ' .. time[1]/
s/(notes\[4\] or ''):sub(1, 8)/(notes[4] or ''):sub(4, 11)/

## lock/scripts/hand_over.lua
s/(note or ''):match('^(%d+)/(note or ''):match('^L2 (%d+)/

## lock/scripts/inspect.lua
s/(note or ''):match('^(%d+)/(note or ''):match('^L2 (%d+)/
