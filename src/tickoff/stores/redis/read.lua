-- What is kept of the name: {held, now, entry}.
local e = load()
return { live and 1 or 0, now, cjson.encode(e) }
