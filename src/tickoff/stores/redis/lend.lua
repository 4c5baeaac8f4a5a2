-- Lend calls of the rate KEYS[1]: the length of a window in ms, its limit, how many are wanted, how many may be
-- lent late. It says in Lua what tickoff/lending.py says in Python. Says first, size, the window's end, the time.
local now = store_time()
local window, limit, wanted, late = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local begun = now - now % window
local kept = redis.call('GET', KEYS[1])
local kept_begun, lent = 0, 0
if kept then
    kept_begun, lent = kept:match('^(%d+) (%d+)$')
    kept_begun, lent = tonumber(kept_begun), tonumber(lent)
end
if kept_begun == begun + window then return { lent, 0, begun + window, now } end
if kept_begun ~= begun then lent = 0 end
local first = math.max(lent, math.floor(limit * (now % window) / window) - late)
local size = math.max(0, math.min(wanted, limit - first))
redis.call('SET', KEYS[1], string.format('%.0f %.0f', begun, first + size), 'PX', window * 2)
return { first, size, begun + window, now }
