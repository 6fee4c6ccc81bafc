# Makes an invented later release of the scripts of lock/scripts: what 1.x may add to the format
# without a new major version. Notes say more, grants say more, there is a message of a kind that is
# not known yet, and a field more.
s/^call('hset', meta, id, time\[1\] .. ' ' .. time\[2\] .. ' ' .. mode)/call('hset', meta, id, time[1] .. ' ' .. time[2] .. ' ' .. mode .. ' more words')/
s/^\( *\)call(listens, channel, token .. .*patience)$/\1call(listens, channel, 'news')\
\1call(listens, channel, token .. ' ' .. string.sub(micros, 1, -4) .. ' ' .. patience .. ' more')/
s/'token', token, 'holder', owner, 'released', released)/'token', token, 'holder', owner, 'released', released, 'later', token)/
