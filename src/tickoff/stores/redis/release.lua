-- Let go if the token still holds the name: 1 or 0.
turn_to(1)
local e = load()
local ok = release(e, ARGV[1])
commit(e)
return ok and 1 or 0
