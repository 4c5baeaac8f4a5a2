-- Let go, and leave a tombstone for as long as ARGV[2] ms, so that a race still under way wins nothing.
turn_to(1, true)
local e = load()
local ok = release(e, ARGV[1])
redis.call('SET', TOMB, '', 'PX', ARGV[2])
commit(e)
return ok and 1 or 0
