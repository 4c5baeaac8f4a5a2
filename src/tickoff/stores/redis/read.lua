-- What is kept of the name: {held, now, entry}.
turn_to(1)
local e = load()
return { live and 1 or 0, now, cjson.encode(e) }
