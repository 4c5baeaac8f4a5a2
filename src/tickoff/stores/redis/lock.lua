-- Decide one bid for a plain lock; ARGV: as above. Says the time and, on the next line, what was decided.
turn_to(1, true)
local line = decide(setmetatable({
    token = ARGV[1], owner = ARGV[2], ttl = tonumber(ARGV[3]), fence = tonumber(ARGV[4]), known_ttl = tonumber(ARGV[5]),
}, NOTHING))
return now .. '\n' .. line
