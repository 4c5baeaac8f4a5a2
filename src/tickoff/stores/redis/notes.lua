-- The notes of the board KEYS[1] that are still good, as key, 'until text', key, …; the others are taken down.
local now = store_time()
local good = {}
local found = redis.call('HGETALL', KEYS[1])
for i = 1, #found, 2 do
    if tonumber(found[i + 1]:match('^%d+')) > now then
        good[#good + 1] = found[i]
        good[#good + 1] = found[i + 1]
    else
        redis.call('HDEL', KEYS[1], found[i])
    end
end
return good
