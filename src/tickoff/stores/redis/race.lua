-- Decide bids one after the other until as many are won as ARGV[1] allows; ARGV[2] … are the bids. Bids that were not
-- reached have no reply.
local left, replies = tonumber(ARGV[1]), {}
for i = 2, #ARGV do
    if left == 0 then break end
    turn_to(5 * i - 9)
    local reply = decide(decode(ARGV[i]))
    if type(reply) == 'string' then left = left - 1 end
    replies[i - 1] = reply
end
return replies
