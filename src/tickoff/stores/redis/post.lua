-- Put a note on the board KEYS[1]: its key, its text, its life in ms. A field is 'until text'. Says the time.
local now = store_time()
local key, text, life = ARGV[1], ARGV[2], tonumber(ARGV[3])
redis.call('HSET', KEYS[1], key, string.format('%.0f %s', now + life, text))
if redis.call('PTTL', KEYS[1]) < life then redis.call('PEXPIRE', KEYS[1], life) end
return now
