-- Take the name from whoever holds it; the fence rises, so that the old holder stays out: {ok, now, entry}.
local by, why = ARGV[1], ARGV[2]
turn_to(1)
local e = load()
local held = live
local outcome, ended, note = nil, nil, ''
if held and e.tick ~= 0 then
    outcome, ended, note = 'lost', now, 'released by ' .. by .. ': ' .. why
elseif crashed(e) then
    outcome, ended = 'crashed', e['until']
end
if outcome then
    record_entry(e, ended, outcome, note)
    if decided_one(e) then
        put(e, 'outcome', outcome)
        put(e, 'outcome_by', e.owner)
        put(e, 'outcome_at', ended)
    end
end
free(e)
put(e, 'fence', math.max(e.fence + 1, now))
put(e, 'barrier', 0)
commit(e)
return { held and 1 or 0, now, cjson.encode(e) }
