-- Pause (ARGV[2] = 'pause', with a reason) or resume; the later word counts: {1, now, entry}.
local by, verb, why = ARGV[1], ARGV[2], ARGV[3]
local paused = verb == 'pause'
turn_to(1)
local e = load()
put(e, 'steered', math.max(e.steered + 1, now))
put(e, 'paused', paused and 1 or 0)
put(e, 'paused_by', paused and by or '')
put(e, 'paused_why', paused and why or '')
commit(e)
return { 1, now, cjson.encode(e) }
