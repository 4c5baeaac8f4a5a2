-- Ticks that end as most do, under a lease that is still theirs and stands in no doubt: what the rest of the script would do,
-- but said first, because it takes longer to set up than this. The first ending that is not as simple ends it, and the rest
-- goes on from there.
-- KEYS: four an ending. ARGV: the endings. Says the time, then a line for each: 1 or 0, a tab, the entry.
now = store_time()
local told, turn = { now }, 1

local function run_of(ending)
    return string.format('%016.0f', ending.held_fence) .. cjson.encode({
        tick = ending.tick, fence = ending.held_fence, owner = ending.owner, started = ending.taken, ended = now,
        outcome = ending.outcome, error = ending.error or '', attempt = ending.attempt, manual = 0,
    })
end

-- The line for an ending whose keys begin there; nil where it is not plain to see that all is well.
local function settle_at_once(first, ending)
    local lock, meta, runs, let_go = KEYS[first], KEYS[first + 1], KEYS[first + 2], KEYS[first + 3]
    local stored, holder = unpack(redis.call('MGET', meta, lock))
    local well = ending.outcome == 'ok' and (ending.tick or 0) ~= 0
    if holder ~= ending.token or not stored or not well then return end
    local e = cjson.decode(stored)
    local ours = e.token == holder and e.tick == ending.tick and e.decided == ending.tick and e.scheduled == 1
    if not ours or e.manual == 1 or redis.call('ZCOUNT', runs, ending.tick, ending.tick) ~= 0 then return end
    redis.call('ZADD', runs, ending.tick, run_of(ending))
    redis.call('ZREMRANGEBYRANK', runs, 0, -(RUNS_KEPT + 1))
    redis.call('PERSIST', runs)
    redis.call('SET', let_go, holder, 'PX', LET_GO_LIFE)
    redis.call('DEL', lock)
    e.token, e.owner, e.tick, e['until'] = nil, nil, nil, nil
    e.since, e.finished = math.max(e.since or 0, ending.tick), math.max(e.finished or 0, ending.tick)
    e.outcome, e.outcome_by, e.outcome_at = 'ok', ending.owner, now
    stored = cjson.encode(e)
    redis.call('SET', meta, stored)
    return '1\t' .. stored
end

while turn <= #ARGV do
    local line = settle_at_once(4 * turn - 3, cjson.decode(ARGV[turn]))
    if not line then break end
    turn = turn + 1
    told[turn] = line
end
if turn > #ARGV then return table.concat(told, '\n') end
