-- Another device and another Idempotency-Key in every request. The message's token must end in seven digits.
local before, after, run
local number = 0

function init()
    before, after = wrk.body:match('^(.*"token":"[^"]-)%d%d%d%d%d%d%d(".*)$')
    local random = io.open("/dev/urandom", "rb")
    run = random:read(8):gsub(".", function(byte) return string.format("%02x", byte:byte()) end)
    random:close()
end

function request()
    number = number + 1
    wrk.headers["Idempotency-Key"] = run .. "-" .. number
    return wrk.format(nil, nil, nil, before .. string.format("%07d", number % 1000000) .. after)
end
