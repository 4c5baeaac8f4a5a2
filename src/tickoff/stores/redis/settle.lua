-- Finish a tick with its outcome and let go, in one step: {ok, now, entry}.
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

local ending = decode(ARGV[1])
turn_to(1)
local e = load()
local ok = was_let_go(ending.token)
if not ok then
    assert_again(e, ending)
    ok = ours(e, ending.token)
    if ok then
        record_hold(ending, ending.outcome, ending.error)
        let_go(e)
        close(e, ending)
    elseif ending.tick ~= 0 then
        local note = 'lost the lease; the work itself ended ' .. ending.outcome
        record_hold(ending, 'lost', ending.error ~= '' and ending.error or note)
    end
end
commit(e)
return { ok and 1 or 0, now, cjson.encode(e) }
