-- Another device in every request: one of a million, drawn at random, so that no device's limit is reached.
-- The message's token must end in seven digits.
local before, after

function init()
    before, after = wrk.body:match('^(.*"token":"[^"]-)%d%d%d%d%d%d%d(".*)$')
    math.randomseed(os.time())
end

function request()
    return wrk.format(nil, nil, nil, before .. string.format("%07d", math.random(0, 999999)) .. after)
end
