import Crypto
import GatewayCore
import RedisClient

/// The Lua program with which Redis charges buckets, and its command.
///
/// One run is atomic. Its arguments are the keys of a tenant's bucket and of all buckets that one chunk of a request
/// would charge, and the current policies. It knows nothing about messages. Its arithmetic is that of `GCRA`, in
/// nanoseconds. Lua's numbers are doubles, exact up to 2^53. Nanoseconds since 1970 exceed that. So the script uses an
/// arrival time's distance from now, at most 30 days, and stores the time in two parts: microseconds since 1970 and
/// nanoseconds.
///
/// A tenant over its quota costs one `GET`: when its bucket refuses, no other key is read.
struct LimiterScript: Sendable {
    private let whole: [[UInt8]]
    private let known: [[UInt8]]

    init(_ text: String = Self.limits) {
        let text = Array(text.utf8)
        self.whole = [Array("EVAL".utf8), text]
        self.known = [Array("EVALSHA".utf8), Array(Hex.text(Insecure.SHA1.hash(data: text)).utf8)]
    }

    /// The command that runs the program. It contains the whole text if the server does not know it yet.
    func command(_ chunk: LimitReckoning.Chunk, whole: Bool) -> RedisCommand {
        let program = whole ? self.whole : self.known
        let numberBytes = 8 * chunk.numbers.count
        // Each word comes with its length and two line ends.
        let room =
            (program.reduce(32) { $0 + $1.count + 16 }) + (Self.nameBytes + 16) * chunk.buckets.count + numberBytes
        // The program, the number of buckets, their names, and the numbers.
        var command = RedisCommand(wordCount: program.count + chunk.buckets.count + 2, reserving: room)
        for word in program { command.add(word) }
        command.add(Array(String(chunk.buckets.count).utf8))
        var start: [UInt8] = []
        start.reserveCapacity(Self.nameBytes)
        start.append(utf8: "rl:{")
        chunk.tenant.appendDigits(to: &start)
        start.append(utf8: "}:")
        for bucket in chunk.buckets {
            command.add(byteCount: Self.nameBytes) { name in
                name += start
                name.append(bucket.scope.letter)
                name.append(UInt8(ascii: ":"))
                bucket.key.appendDigits(to: &name)
            }
        }
        command.add(byteCount: numberBytes) { bytes in
            for number in chunk.numbers { bytes.append(bigEndian: UInt64(bitPattern: number)) }
        }
        return command
    }

    /// The length of a bucket's name: `rl:{<tenant>}:<kind>:<key>`.
    private static let nameBytes = "rl:{}:k:".utf8.count + 2 * LimitKey.digitCount

    /// The numbers of an answer. `nil` if the bytes are none, or one is too large to be exact in Lua.
    static func numbers(_ bytes: [UInt8]) -> ArraySlice<Int64>? {
        guard bytes.count.isMultiple(of: 8) else { return nil }
        var numbers: [Int64] = []
        numbers.reserveCapacity(bytes.count / 8)
        for start in stride(from: 0, to: bytes.count, by: 8) {
            let number = bytes[start..<start + 8].reduce(0 as Int64) { $0 << 8 | Int64($1) }
            guard number.magnitude <= 1 << 53 else { return nil }
            numbers.append(number)
        }
        return numbers[...]
    }

    /// The arguments are numbers of eight bytes, highest byte first, in this order:
    ///
    /// - 1 to charge or 0 to look; the number of events charged to the tenant alone; the number of classes of a
    ///   recipient's keys;
    /// - for the tenant and for each class, the number of policies, and each one's interval in nanoseconds and burst;
    /// - for each recipient, how many of the keys after the tenant's are its own, class by class.
    ///
    /// The answer has the same form: the time in microseconds, the events granted to the tenant alone, and the tenant's
    /// backlogs. Each recipient follows with 0 if it was admitted, or -1 if the tenant's bucket refused it. Otherwise
    /// it has the index of the key that refused it, and the nanoseconds until that key has room. A look returns the
    /// backlogs of all keys of each recipient instead.
    static let limits = #"""
        -- Charges one chunk of a request to a tenant's buckets. All times are nanoseconds that a double holds exactly:
        -- a bucket is its backlogs, one for each policy: how far its theoretical arrival time lies ahead of now.
        local time = redis.call('TIME')
        local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
        local margin = 0

        local function format(count) return '>' .. string.rep('i8', count) end
        local count = #ARGV[1] / 8
        local numbers = {struct.unpack(format(count), ARGV[1])}
        local position = 0
        local function nextNumber()
          position = position + 1
          return numbers[position]
        end
        local charges = nextNumber() == 1
        local calls = nextNumber()
        local classCount = nextNumber()
        local function nextPolicies()
          local list = {}
          for index = 1, nextNumber() do
            local interval, burst = nextNumber(), nextNumber()
            list[index] = {interval = interval, full = interval * burst}
          end
          return list
        end
        local tenantPolicies = nextPolicies()
        local classes = {}
        for index = 1, classCount do classes[index] = nextPolicies() end

        local buckets = {}
        local function bucket(key, policies)
          local known = buckets[key]
          if known then return known end
          known = {policies = policies, isDirty = false}
          buckets[key] = known
          local text = #policies > 0 and redis.call('GET', key)
          -- A value of another length is foreign, and counts as a full bucket.
          local isStored = text and #text == 10 * #policies
          for index = 1, #policies do
            local backlog = 0
            if isStored then
              local micros, nanos = struct.unpack('>i8I2', text, index * 10 - 9)
              backlog = math.max(0, (micros - now) * 1000 + nanos)
              -- Only a clock that was set back can have put it so far ahead; its readings may differ by a second.
              if backlog > policies[index].full + 1000000000 then
                backlog = policies[index].full
                known.isDirty = true
              end
            end
            known[index] = backlog
          end
          return known
        end

        -- Nanoseconds until one event fits; 0 if it fits now.
        local function wait(known)
          local longest = 0
          for index, policy in ipairs(known.policies) do
            longest = math.max(longest, known[index] + policy.interval - policy.full)
          end
          return longest
        end

        local function charge(known, events)
          for index, policy in ipairs(known.policies) do known[index] = known[index] + events * policy.interval end
        end

        local tenant = bucket(KEYS[1], tenantPolicies)
        local granted = calls
        if charges and calls > 0 then
          for index, policy in ipairs(tenantPolicies) do
            granted = math.max(0, math.min(granted, math.floor((policy.full - tenant[index]) / policy.interval)))
          end
          if granted > 0 then
            charge(tenant, granted)
            tenant.isDirty = true
          end
        end

        local place = 1
        local outcomes = {}
        local isSpent = charges and wait(tenant) > 0
        while position < count do
          local size = nextNumber()
          if not charges then
            for index = 1, size do
              for _, backlog in ipairs(bucket(KEYS[place + index], classes[(index - 1) % classCount + 1])) do
                outcomes[#outcomes + 1] = backlog
              end
            end
          elseif isSpent then
            outcomes[#outcomes + 1] = -1
          else
            local charged, longest = {}, 0
            while longest == 0 and #charged < size do
              local index = #charged + 1
              local known = bucket(KEYS[place + index], classes[(index - 1) % classCount + 1])
              longest = wait(known)
              if longest == 0 then
                charge(known, 1)
                charged[index] = known
              end
            end
            if longest == 0 then
              for _, known in ipairs(charged) do known.isDirty = true end
              charge(tenant, 1)
              tenant.isDirty = true
              isSpent = wait(tenant) > 0
              outcomes[#outcomes + 1] = 0
            else
              for _, known in ipairs(charged) do charge(known, -1) end
              outcomes[#outcomes + 1] = #charged + 1
              outcomes[#outcomes + 1] = longest
            end
          end
          place = place + size
        end

        -- A look writes as well what a clock that was set back had put too far ahead.
        for key, known in pairs(buckets) do
          if known.isDirty and #known > 0 then
            local text, latest = '', 0
            for index = 1, #known do
              local backlog = known[index]
              text = text .. struct.pack('>i8I2', now + math.floor(backlog / 1000), backlog % 1000)
              latest = math.max(latest, backlog)
            end
            local life = math.ceil(latest / 1000000) + margin
            -- Some servers write round numbers with an exponent, and refuse that.
            if life > 0 then redis.call('SET', key, text, 'PX', string.format('%d', life)) end
          end
        end

        local answer = {now, granted}
        for index = 1, #tenant do answer[#answer + 1] = tenant[index] end
        for index = 1, #outcomes do answer[#answer + 1] = outcomes[index] end
        return struct.pack(format(#answer), unpack(answer))
        """#
}

extension LimitScope {
    /// The scope in a bucket's name.
    fileprivate var letter: UInt8 {
        switch self {
        case .tenant: UInt8(ascii: "t")
        case .device: UInt8(ascii: "d")
        case .deviceCollapsible: UInt8(ascii: "c")
        case .topic: UInt8(ascii: "o")
        }
    }
}
