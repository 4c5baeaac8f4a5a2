-- Take a note down from the board KEYS[1]: 1 for whoever did it first, while it was good.
local now = store_time()
local found = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[1], ARGV[1])
return found and tonumber(found:match('^%d+')) > now and 1 or 0
