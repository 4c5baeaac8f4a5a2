-- Prolong a lease that is still ours, or assert it anew where the store forgot it: {ok, now, entry}.
local hold = decode(ARGV[1])
turn_to(1)
local e = load()
assert_again(e, hold)
local ok = ours(e, hold.token)
if ok then
    redis.call('PEXPIRE', LOCK, hold.ttl)
    put(e, 'until', now + hold.ttl)
    put(e, 'ttl', hold.ttl)
end
commit(e)
return { ok and 1 or 0, now, cjson.encode(e) }
