import Crypto
import GatewayCore
import RedisClient

/// The program by which Redis charges buckets, and how it is called.
///
/// One run is atomic. It is told the keys of a tenant's bucket and of everything that one chunk of a request would
/// charge, and the policies in force; it knows nothing of messages. The arithmetic is that of `GCRA`, in nanoseconds, and
/// the rules for policies that have changed are those of `PolicyHistory`. Lua's numbers are doubles, exact up to 2^53.
/// Nanoseconds since 1970 are not, so that an arrival time is reckoned with as its distance from now, 30 days at most,
/// and kept in two parts.
struct LimiterScript: Sendable {
    private let whole: [[UInt8]]
    private let known: [[UInt8]]

    init(_ text: String = Self.limits) {
        let text = Array(text.utf8)
        self.whole = [Array("EVAL".utf8), text]
        self.known = [Array("EVALSHA".utf8), Array(Hex.text(Insecure.SHA1.hash(data: text)).utf8)]
    }

    /// The command that runs it; whole where the server does not know it yet.
    func command(_ chunk: LimitReckoning.Chunk, whole: Bool) -> RedisCommand {
        var numbers: [UInt8] = []
        for number in chunk.numbers {
            for shift in stride(from: 56, through: 0, by: -8) {
                numbers.append(UInt8(truncatingIfNeeded: number >> shift))
            }
        }
        let count = Array("\(chunk.keys.count)".utf8)
        return RedisCommand((whole ? self.whole : self.known) + [count] + chunk.keys + [numbers])
    }

    /// The numbers of an answer; `nil` where bytes are none, or one is larger than Lua's are exact.
    static func numbers(_ bytes: [UInt8]) -> ArraySlice<Int64>? {
        guard bytes.count.isMultiple(of: 8) else { return nil }
        var numbers: [Int64] = []
        for start in stride(from: 0, to: bytes.count, by: 8) {
            let number = bytes[start..<start + 8].reduce(0 as Int64) { $0 << 8 | Int64($1) }
            guard number.magnitude <= 1 << 53 else { return nil }
            numbers.append(number)
        }
        return numbers[...]
    }

    /// What is said to the program: numbers, each in eight bytes with the highest first, in this order.
    ///
    /// - the revision of the policies; 1 to charge, 0 to look; how many events the tenant alone is charged;
    /// - how many classes of keys a recipient has, then for the tenant and for each class how many policies there are,
    ///   and each one's interval in nanoseconds and burst;
    /// - for each recipient how many of the keys behind the tenant's are its own, class after class.
    ///
    /// It answers in the same way with now in microseconds, the events granted to the tenant alone, a number for each
    /// recipient (0 admitted, -1 refused by the tenant's bucket, else by the class of that number), the tenant's backlogs,
    /// and for each recipient that was refused, or was looked at, the backlogs of all its keys.
    static let limits = #"""
        -- Charges one chunk of a request to a tenant's buckets. All times are nanoseconds that a double holds exactly:
        -- a bucket is reckoned with as its backlog, how far its theoretical arrival time lies ahead of now.
        local time = redis.call('TIME')
        local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
        local margin = 0

        local function format(count) return '>' .. string.rep('i8', count) end
        local numbers = {struct.unpack(format(#ARGV[1] / 8), ARGV[1])}
        local position = 0
        local function nextNumber()
          position = position + 1
          return numbers[position]
        end
        local revision = nextNumber()
        local charges = nextNumber() == 1
        local calls = nextNumber()
        local classCount = nextNumber()
        local function nextPolicies()
          local list = {}
          for index = 1, nextNumber() do list[index] = {interval = nextNumber(), burst = nextNumber()} end
          return list
        end
        local tenantPolicies = nextPolicies()
        local classes = {}
        for index = 1, classCount do classes[index] = nextPolicies() end

        -- What is used up of some policies, under others: of the same one, of the next slower, or of the slowest.
        local function carried(from, to)
          local isSame = #from == #to
          for index, policy in ipairs(to) do
            local former = from[index]
            isSame = isSame and former.interval == policy.interval and former.burst == policy.burst
          end
          if isSame then return from end
          local list = {}
          for index, policy in ipairs(to) do
            local same, slower, slowest
            for _, former in ipairs(from) do
              if former.interval == policy.interval and former.burst == policy.burst then
                same = same or former
              end
              if former.interval >= policy.interval and (not slower or former.interval < slower.interval) then
                slower = former
              end
              if not slowest or former.interval > slowest.interval then slowest = former end
            end
            local source = same or slower or slowest
            local events = math.floor(source.backlog / source.interval)
            local rest = source.backlog - events * source.interval
            local backlog = events * policy.interval + math.ceil(rest * policy.interval / source.interval)
            list[index] = {
              interval = policy.interval, burst = policy.burst,
              backlog = same and same.backlog or math.min(backlog, policy.interval * policy.burst)
            }
          end
          return list
        end

        local buckets = {}
        local function bucket(key, policies)
          local known = buckets[key]
          if known then return known end
          known = {revision = revision, asked = policies, isDirty = false, list = {}}
          buckets[key] = known
          local text = redis.call('GET', key)
          -- What has another length is nobody's quota.
          if not text or #text < 40 or #text % 32 ~= 8 then
            for index, policy in ipairs(policies) do
              known.list[index] = {interval = policy.interval, burst = policy.burst, backlog = 0}
            end
            return known
          end
          local stored, place = struct.unpack('>i8', text)
          while place <= #text do
            local interval, burst, micros, nanos
            interval, burst, micros, nanos, place = struct.unpack('>i8i8i8i8', text, place)
            local backlog = (micros - now) * 1000 + nanos
            -- Only a clock that was set back can have put it so far ahead; its readings may differ by a second.
            if backlog > interval * burst + 1000000000 then
              backlog = interval * burst
              known.isDirty = true
            end
            known.list[#known.list + 1] = {interval = interval, burst = burst, backlog = math.max(0, backlog)}
          end
          -- Policies that came later rule, whoever asks.
          if stored > revision then
            known.revision = stored
          else
            known.list = carried(known.list, policies)
          end
          return known
        end

        local function admits(known)
          for _, policy in ipairs(known.list) do
            if policy.backlog + policy.interval > policy.interval * policy.burst then return false end
          end
          return true
        end

        local function charge(known, count)
          for _, policy in ipairs(known.list) do policy.backlog = policy.backlog + count * policy.interval end
        end

        -- Adds the backlogs of a bucket in the terms of whoever asks.
        local function addBacklogs(answer, known)
          for _, policy in ipairs(carried(known.list, known.asked)) do answer[#answer + 1] = policy.backlog end
        end

        local tenant
        if #tenantPolicies > 0 then tenant = bucket(KEYS[1], tenantPolicies) end

        local granted = calls
        if tenant and charges and calls > 0 then
          for _, policy in ipairs(tenant.list) do
            local room = math.floor((policy.interval * policy.burst - policy.backlog) / policy.interval)
            granted = math.max(0, math.min(granted, room))
          end
          if granted > 0 then
            charge(tenant, granted)
            tenant.isDirty = true
          end
        end

        local place = 1
        local answer = {now, granted}
        local states = {}
        while position < #ARGV[1] / 8 do
          local size = nextNumber()
          local members = {}
          for index = 1, size do
            members[index] = bucket(KEYS[place + index], classes[(index - 1) % classCount + 1])
          end
          place = place + size
          local outcome = 0
          if charges then
            if tenant and not admits(tenant) then
              outcome = -1
            else
              local charged = 0
              while outcome == 0 and charged < size do
                if admits(members[charged + 1]) then
                  charged = charged + 1
                  charge(members[charged], 1)
                else
                  outcome = charged % classCount + 1
                end
              end
              if outcome == 0 then
                for index = 1, size do members[index].isDirty = true end
                if tenant then
                  charge(tenant, 1)
                  tenant.isDirty = true
                end
              else
                for index = 1, charged do charge(members[index], -1) end
              end
            end
          end
          answer[#answer + 1] = outcome
          if outcome ~= 0 or not charges then
            for index = 1, size do states[#states + 1] = members[index] end
          end
        end

        if charges then
          for key, known in pairs(buckets) do
            if known.isDirty then
              local text = struct.pack('>i8', known.revision)
              local latest = 0
              for _, policy in ipairs(known.list) do
                local micros, nanos = now + math.floor(policy.backlog / 1000), policy.backlog % 1000
                text = text .. struct.pack('>i8i8i8i8', policy.interval, policy.burst, micros, nanos)
                latest = math.max(latest, policy.backlog)
              end
              local life = math.ceil(latest / 1000000) + margin
              -- Some servers write round numbers with an exponent, and refuse that.
              if life > 0 then redis.call('SET', key, text, 'PX', string.format('%d', life)) end
            end
          end
        end

        if tenant then addBacklogs(answer, tenant) end
        for _, known in ipairs(states) do addBacklogs(answer, known) end
        return struct.pack(format(#answer), unpack(answer))
        """#
}
