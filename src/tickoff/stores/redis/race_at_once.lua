-- Ticks that nothing stands in the way of, or that are plainly lost: what `decide` would say of them, but said first,
-- because most of what is due at one instant is of that kind, and the rest of the script takes longer than this. The first
-- bid that is not as simple ends it, and the rest of the script goes on from there.
-- KEYS: five a bid, then perhaps a purse, in which scripts of one race leave to the next how many may still be won.
-- ARGV: how many may be won, unless the purse tells, then the bids. Says the time, then a line for each bid it came to.
now = store_time()
local PURSE = #KEYS % 5 == 1 and KEYS[#KEYS]
local left = tonumber(PURSE and redis.call('GET', PURSE) or ARGV[1])
local told, turn = { now }, 2

-- Whether the store knows as much as the bid's server, so that there is nothing to recall.
local function knows(e, bid)
    return (bid.fence or 0) <= (e.fence or 0) and (bid.decided or 0) <= (e.decided or 0)
        and (bid.finished or 0) <= (e.finished or 0) and (bid.since or 0) <= (e.since or 0)
        and (bid.steered or 0) <= (e.steered or 0)
end

-- Values as JSON, each made once: what is due at one instant shares most of them, and making a number a text is slow.
local said = setmetatable({}, { __index = function(texts, value)
    texts[value] = type(value) == 'number' and string.format('%.0f', value) or cjson.encode(value)
    return texts[value]
end })

local function start_at_once(e, bid, lock, meta, runs)
    local fence, tick, taken, ttl = said[math.max((e.fence or 0) + 1, now)], said[bid.tick], said[now], said[bid.ttl]
    local finished, since, steered = said[e.finished or 0], said[e.since or 0], said[e.steered or 0]
    if not redis.call('SET', lock, bid.token, 'PX', ttl, 'NX') then return end
    if e.scheduled ~= 1 then redis.call('PERSIST', runs) end
    redis.call('SET', meta, '{"token":' .. cjson.encode(bid.token) .. ',"owner":' .. said[bid.owner] .. ',"tick":' .. tick
        .. ',"taken":' .. taken .. ',"until":' .. said[now + bid.ttl] .. ',"ttl":' .. ttl .. ',"fence":' .. fence
        .. ',"attempt":1,"decided":' .. tick .. ',"finished":' .. finished .. ',"since":' .. since
        .. ',"steered":' .. steered .. ',"scheduled":1}')
    return taken .. ' 1 ' .. fence .. ' 1 ' .. tick .. ' ' .. finished .. ' ' .. since .. ' ' .. steered, true
end

-- The line for a bid whose keys begin there, and whether it was won; nil where that is not plain to see.
local function at_once(first, bid)
    local meta, holder, tombstone = unpack(redis.call('MGET', KEYS[first + 1], KEYS[first], KEYS[first + 4]))
    local e = meta and cjson.decode(meta) or {}
    local tick, decided, finished = bid.tick or 0, e.decided or 0, e.finished or 0
    if tombstone or e.paused or e.barrier or bid.manual == 1 or tick == 0 or tick > now then return end
    if not knows(e, bid) then return end
    if decided < tick then
        local free = not e.token and finished < tick
        if not free or bid.scheduled ~= 1 then return end
        return start_at_once(e, bid, KEYS[first], KEYS[first + 1], KEYS[first + 2])
    end
    if holder and (holder ~= e.token or holder == bid.token) or not holder and (e['until'] or 0) > now then return end
    if tick < decided or tick <= finished then return 'done\t' .. meta, false end
    if holder then return 'held\t' .. meta, false end
end

local function take_in(line, won)
    told[turn], turn = line, turn + 1
    if won then left = left - 1 end
end

local function over()
    return left == 0 or turn > #ARGV
end

local function reply()
    if PURSE then redis.call('SET', PURSE, left, 'PX', PURSE_LIFE) end
    return table.concat(told, '\n')
end

while not over() do
    local line, won = at_once(5 * turn - 9, cjson.decode(ARGV[turn]))
    if not line then break end
    take_in(line, won)
end
if over() then return reply() end
