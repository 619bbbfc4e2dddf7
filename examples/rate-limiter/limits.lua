#!lua name=limits

-- Lets at most ARGS[1] requests pass in any ARGS[2] milliseconds, for the client whose key is KEYS[1].
-- Answers whether this request passes, how many more would pass now, and the milliseconds until the next one passes
-- if this one does not.
--
-- The key is a sorted set with the time of each request that passed in the last window, in microseconds. A window
-- that slides has no edge at which a client could send twice its limit.
redis.register_function('limits_allow', function(keys, args)
    local limit, window = tonumber(args[1]), tonumber(args[2])
    local time = redis.call('TIME')
    local now = time[1] * 1000000 + time[2]
    redis.call('ZREMRANGEBYSCORE', keys[1], '-inf', now - window * 1000)
    local passed = redis.call('ZCARD', keys[1])
    if passed >= limit then
        local oldest = redis.call('ZRANGE', keys[1], 0, 0, 'WITHSCORES')
        local wait = oldest[2] and (oldest[2] + window * 1000 - now) / 1000 or window
        return {0, 0, math.ceil(wait)}
    end
    -- Two requests may come in one microsecond, so the number makes the member another one.
    redis.call('ZADD', keys[1], now, string.format('%.0f-%d', now, passed))
    redis.call('PEXPIRE', keys[1], window)
    return {1, limit - passed - 1, 0}
end)
