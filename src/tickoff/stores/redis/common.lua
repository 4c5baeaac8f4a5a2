-- What all scripts share. They say in Lua what tickoff/rules.py says in Python: keep the two alike.
-- KEYS of a name: the lock itself, our data of the name, its history, the token let go last, the tombstone of
-- the caller's token (if the script wants it).
local LOCK, META, RUNS, LET_GO, TOMB
now = now or store_time()

-- What is not there is nothing: entries are stored, and requests are sent, without their zeros.
local NOTHING = { __index = {
    token = '', owner = '', tick = 0, taken = 0, ['until'] = 0, ttl = 0, fence = 0, attempt = 0,
    decided = 0, finished = 0, since = 0, open = 0, outcome = '', outcome_by = '', outcome_at = 0,
    steered = 0, paused = 0, paused_by = '', paused_why = '', barrier = 0, scheduled = 0,
    attempts = 1, takeover = 0, manual = 0, known_ttl = 0, held_fence = 0, held_until = 0, error = '',
} }

local function decode(text)
    return setmetatable(cjson.decode(text), NOTHING)
end

local stored, holder, tombstone, live, changed

-- Turn to the name whose keys begin there; all that follows is about it.
local function turn_to(first, withdrawable)
    LOCK, META, RUNS, LET_GO = KEYS[first], KEYS[first + 1], KEYS[first + 2], KEYS[first + 3]
    TOMB = withdrawable and KEYS[first + 4]
    live, changed, tombstone = false, false, false
    if TOMB then
        stored, holder, tombstone = unpack(redis.call('MGET', META, LOCK, TOMB))
    else
        stored, holder = unpack(redis.call('MGET', META, LOCK))
    end
    if not holder and redis.call('EXISTS', LOCK) == 1 then holder = 'a key that is no string' end
end

local function put(e, field, value)
    if value == NOTHING.__index[field] then value = nil end
    e[field] = value
    changed = true
end

-- Write what changed, and let a name without a schedule live for a while longer.
local function commit(e)
    if not changed then return end
    if e.scheduled == 1 or e.paused == 1 then
        redis.call('SET', META, cjson.encode(e))
        redis.call('PERSIST', RUNS)
    else
        redis.call('SET', META, cjson.encode(e), 'PX', UNSCHEDULED_LIFE)
    end
end

local function crashed(e)
    return e.token ~= '' and not live and e.tick ~= 0
end

-- Whether the lease is, or was, for the tick decided last: not a plain lock, a manual or an older run.
local function decided_one(e)
    return e.tick ~= 0 and e.tick == e.decided and e.manual == 0
end

local function ours(e, token)
    return live and e.token == token
end

-- A line of history is written once; only a `crashed`, which was a guess, gives way to `lost`.
local function record(run)
    local id = string.format('%016.0f', run.fence)
    for _, line in ipairs(redis.call('ZRANGEBYSCORE', RUNS, run.tick, run.tick)) do
        if line:sub(1, 16) == id then
            local guess = cjson.decode(line:sub(17)).outcome == 'crashed'
            if not (guess and run.outcome == 'lost') then return end
            redis.call('ZREM', RUNS, line)
        end
    end
    redis.call('ZADD', RUNS, run.tick, id .. cjson.encode(run))
    redis.call('ZREMRANGEBYRANK', RUNS, 0, -(RUNS_KEPT + 1))
    redis.call('PEXPIRE', RUNS, UNSCHEDULED_LIFE)
end

local function record_entry(e, ended, outcome, why)
    record({
        tick = e.tick, fence = e.fence, owner = e.owner, started = e.taken, ended = ended,
        outcome = outcome, error = why, attempt = e.manual == 1 and 1 or e.attempt, manual = e.manual,
    })
end

-- The entry of this name. The lock key is the truth: it may be a foreign program's, or gone.
local function load()
    local e = stored and decode(stored) or setmetatable({}, NOTHING)
    live = holder and true or false
    if live and holder ~= e.token then
        if e.tick ~= 0 then record_entry(e, e['until'], 'crashed', '') end
        local left = redis.call('PTTL', LOCK)
        e.token, e.owner, e.tick, e.taken, e.manual = holder, '', 0, 0, nil
        e['until'] = now + (left < 0 and UNSCHEDULED_LIFE or left)
    elseif not live and e['until'] > now then
        e['until'] = now
    end
    return e
end

local function record_hold(hold, outcome, why)
    record({
        tick = hold.tick, fence = hold.held_fence, owner = hold.owner, started = hold.taken, ended = now,
        outcome = outcome, error = why, attempt = hold.manual == 1 and 1 or hold.attempt, manual = hold.manual,
    })
end

local function finish(e, tick, outcome, by, at)
    put(e, 'finished', math.max(e.finished, tick))
    put(e, 'outcome', outcome)
    put(e, 'outcome_by', by)
    put(e, 'outcome_at', at)
end

-- Take the maximum of what is stored and what a server remembers; a store that forgot waits a while.
local function recall(e, known, wait)
    if wait and known.fence > e.fence then
        put(e, 'fence', known.fence)
        put(e, 'barrier', math.max(e.barrier, now + math.floor(wait * 2 / 5)))
    end
    if known.decided > e.decided then
        put(e, 'decided', known.decided)
        put(e, 'attempt', 0)
        put(e, 'open', 0)
        put(e, 'outcome', '')
    end
    if known.steered > e.steered then
        put(e, 'steered', known.steered)
        put(e, 'paused', known.paused)
        put(e, 'paused_by', known.paused_by)
        put(e, 'paused_why', known.paused_why)
    end
    if known.finished > e.finished then put(e, 'finished', known.finished) end
    if known.since > e.since then put(e, 'since', known.since) end
end

-- Put a forgotten lease back; one released on purpose (equal fence) stays released.
local function assert_again(e, hold)
    local waiting = e.barrier > now and e.fence == hold.held_fence
    local forgotten = not live and (e.fence < hold.held_fence or waiting)
    if not forgotten or hold.held_until <= now then return end
    if hold.tick > e.decided and hold.manual == 0 then
        put(e, 'decided', hold.tick)
        put(e, 'attempt', hold.attempt)
    end
    recall(e, hold, nil)
    put(e, 'token', hold.token)
    put(e, 'owner', hold.owner)
    put(e, 'tick', hold.tick)
    put(e, 'manual', hold.manual)
    put(e, 'taken', hold.taken)
    put(e, 'until', hold.held_until)
    put(e, 'ttl', hold.ttl)
    put(e, 'fence', hold.held_fence)
    put(e, 'barrier', 0)
    put(e, 'scheduled', math.max(e.scheduled, hold.scheduled))
    live = true
    redis.call('SET', LOCK, hold.token, 'PX', hold.held_until - now)
end

local function free(e)
    redis.call('DEL', LOCK)
    live = false
    put(e, 'token', '')
    put(e, 'owner', '')
    put(e, 'tick', 0)
    put(e, 'manual', 0)
    put(e, 'until', 0)
end

local function let_go(e)
    redis.call('SET', LET_GO, e.token, 'PX', LET_GO_LIFE)
    free(e)
end

local function was_let_go(token)
    return redis.call('GET', LET_GO) == token
end

-- Let go of a lease that is still this token's; a tick given back unstarted may be started by anybody.
local function release(e, token)
    if not ours(e, token) then return was_let_go(token) end
    if decided_one(e) and e.finished < e.tick then
        put(e, 'open', 1)
        put(e, 'attempt', e.attempt - 1)
    end
    let_go(e)
    return true
end
