-- What is kept of names, whose keys stand four and four. Says the time, then a line for each: 1 or 0, a tab, the entry.
local told = { now }
for first = 1, #KEYS, 4 do
    turn_to(first)
    local e = load()
    told[#told + 1] = (live and '1' or '0') .. '\t' .. cjson.encode(e)
end
return table.concat(told, '\n')
