-- Let go of a plain lock, which needs no more than this; all else falls through. Entries are stored without their zeros,
-- so that one of a plain lock has no tick.
do
    local meta, holder = unpack(redis.call('MGET', KEYS[2], KEYS[1]))
    if holder == ARGV[1] and meta and not meta:find('"tick":', 1, true) then
        redis.call('DEL', KEYS[1])
        redis.call('SET', KEYS[4], holder, 'PX', LET_GO_LIFE)
        return 1
    end
end
