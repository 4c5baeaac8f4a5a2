-- Let go if the token still holds the name: 1 or 0.
-- A plain lock needs no more than that. Entries are stored without their zeros, so it has no tick.
turn_to(1)
if holder == ARGV[1] and stored and not stored:find('"tick":', 1, true) then
    redis.call('DEL', LOCK)
    redis.call('SET', LET_GO, holder, 'PX', LET_GO_LIFE)
    return 1
end
local e = load()
local ok = release(e, ARGV[1])
commit(e)
return ok and 1 or 0
