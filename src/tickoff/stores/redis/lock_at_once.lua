-- A plain lock that nothing stands in the way of: what `decide` would do, but said first, because setting up the rest of
-- the script takes longer than this. All that is not as simple falls through.
-- ARGV: token, owner, TTL, the highest fence that the bid's server has seen, the TTL of that lease.
do
    local meta, holder, tombstone = unpack(redis.call('MGET', KEYS[2], KEYS[1], KEYS[5]))
    local e = meta and cjson.decode(meta) or {}
    local free = not (holder or tombstone or e.tick or e.paused or e.barrier or e.scheduled)
    free = free and tonumber(ARGV[4]) <= (e.fence or 0)
    if free and redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3], 'NX') then
        now = store_time()
        e.token, e.owner, e.taken, e.ttl = ARGV[1], ARGV[2], now, tonumber(ARGV[3])
        e['until'], e.fence = now + e.ttl, math.max((e.fence or 0) + 1, now)
        redis.call('SET', KEYS[2], cjson.encode(e), 'PX', UNSCHEDULED_LIFE)
        local marks = { e.attempt or 0, e.decided or 0, e.finished or 0, e.since or 0, e.steered or 0 }
        return now .. '\n' .. now .. ' 0 ' .. e.fence .. ' ' .. table.concat(marks, ' ')
    end
end
