-- What a race means, for one bid. A win is told as 'taken scheduled fence attempt decided finished since steered', a loss
-- as why, a tab, and the entry; so is a win found again during a pause, of which its server has to know.
local function again(e, bid)
    return (e.open == 1 or bid.takeover == 1) and e.attempt < bid.attempts
end

local function refusal(e, bid)
    if tombstone then return 'held' end
    if ours(e, bid.token) then return nil end
    if bid.tick > now then return 'too early' end
    local tick = bid.manual == 1 and 0 or bid.tick
    if tick ~= 0 and (tick < e.decided or tick <= e.finished) then return 'done' end
    if live then return 'held' end
    if e.paused == 1 then return 'paused' end
    if e.barrier > now then return 'held' end
    if tick ~= 0 and tick == e.decided and not again(e, bid) then return 'done' end
    return nil
end

-- A tick that fell on a running one or into a pause is decided, and recorded, as skipped.
local function skip(e, bid, why)
    local overlap = why == 'held' and live and e.tick > 0 and e.tick < bid.tick and e.manual == 0
    if bid.manual == 1 or bid.tick <= e.decided or not (overlap or why == 'paused') then return end
    local note = 'overlap: ' .. e.owner .. ' is still at work'
    if why == 'paused' then note = 'paused by ' .. e.paused_by .. ': ' .. e.paused_why end
    put(e, 'decided', bid.tick)
    put(e, 'attempt', 0)
    put(e, 'open', 0)
    put(e, 'scheduled', math.max(e.scheduled, bid.scheduled))
    finish(e, bid.tick, 'skipped', bid.owner, now)
    record({
        tick = bid.tick, fence = 0, owner = bid.owner, started = now, ended = now,
        outcome = 'skipped', error = note, attempt = 0, manual = 0,
    })
end

-- Start a tick, afresh or once more.
local function start(e, tick)
    if tick > e.decided then
        put(e, 'decided', tick)
        put(e, 'attempt', 0)
        put(e, 'outcome', '')
        put(e, 'outcome_by', '')
        put(e, 'outcome_at', 0)
    end
    if tick ~= 0 then
        put(e, 'attempt', e.attempt + 1)
        put(e, 'open', 0)
    end
end

local function grant(e, bid)
    if crashed(e) then
        record_entry(e, e['until'], 'crashed', '')
        if decided_one(e) then
            put(e, 'outcome', 'crashed')
            put(e, 'outcome_by', e.owner)
            put(e, 'outcome_at', e['until'])
        end
    end
    if bid.manual == 0 then start(e, bid.tick) end
    put(e, 'token', bid.token)
    put(e, 'owner', bid.owner)
    put(e, 'tick', bid.tick)
    put(e, 'manual', bid.manual)
    put(e, 'taken', now)
    put(e, 'until', now + bid.ttl)
    put(e, 'ttl', bid.ttl)
    put(e, 'fence', math.max(e.fence + 1, now))
    put(e, 'barrier', 0)
    put(e, 'scheduled', math.max(e.scheduled, bid.scheduled))
    redis.call('SET', LOCK, bid.token, 'PX', bid.ttl)
end

local function decide(bid)
    local e = load()
    recall(e, bid, math.max(bid.known_ttl, bid.ttl))
    local why = refusal(e, bid)
    if why then
        skip(e, bid, why)
        commit(e)
        return why .. '\t' .. cjson.encode(e), false
    end
    if not live then grant(e, bid) end
    commit(e)
    if e.paused == 1 then return 'won\t' .. cjson.encode(e), true end
    local told = { e.taken, e.scheduled, e.fence, e.attempt, e.decided, e.finished, e.since, e.steered }
    return table.concat(told, ' '), true
end
