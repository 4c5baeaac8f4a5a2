-- Finish the ticks that are left, each with its outcome, and let go, in one step.
local function close(e, ending)
    if ending.manual == 1 then return end
    if ending.outcome == 'ok' and ending.tick > e.since then put(e, 'since', ending.tick) end
    if ending.tick ~= e.decided then return end
    if ending.outcome == 'ok' or ending.attempt >= ending.attempts then
        finish(e, ending.tick, ending.outcome, ending.owner, now)
    else
        put(e, 'open', 1)
    end
end

-- Whether a tick was still ours to finish.
local function settle(e, ending)
    if was_let_go(ending.token) then return true end
    assert_again(e, ending)
    if ours(e, ending.token) then
        record_hold(ending, ending.outcome, ending.error)
        let_go(e)
        close(e, ending)
        return true
    end
    if ending.tick ~= 0 then
        local note = 'lost the lease; the work itself ended ' .. ending.outcome
        record_hold(ending, 'lost', ending.error ~= '' and ending.error or note)
    end
    return false
end

while turn <= #ARGV do
    local first, ending = 4 * turn - 3, decode(ARGV[turn])
    local line = settle_at_once(first, ending)
    if not line then
        turn_to(first)
        local e = load()
        local ok = settle(e, ending)
        commit(e)
        line = (ok and '1' or '0') .. '\t' .. cjson.encode(e)
    end
    turn = turn + 1
    told[turn] = line
end
return table.concat(told, '\n')
