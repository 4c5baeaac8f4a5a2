-- What every script begins with.
local UNSCHEDULED_LIFE, LET_GO_LIFE, PURSE_LIFE, RUNS_KEPT = 604800000, 3600000, 60000, 1000
local now

local function store_time()
    local clock = redis.call('TIME')
    return clock[1] * 1000 + math.floor(clock[2] / 1000)
end
