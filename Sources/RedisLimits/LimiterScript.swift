import Crypto
import RedisClient

/// The program by which Redis charges buckets, and how it is called.
///
/// One run is atomic. It is told the keys of a tenant's bucket and of everything that one chunk of a request would
/// charge, and the policies in force; it knows nothing of messages. The arithmetic is that of `GCRA`, in nanoseconds, and
/// the rules for policies that have changed are those of `PolicyHistory`. Lua's numbers are doubles, exact up to 2^53.
/// Nanoseconds since 1970 are not, so that an arrival time is reckoned with as its distance from now, 30 days at most,
/// and written in two parts. `%d` writes all digits, where concatenation would round to fourteen.
struct LimiterScript: Sendable {
    let text: String
    /// By which the server knows it.
    let digest: String

    init(_ text: String = Self.limits) {
        self.text = text
        self.digest = Insecure.SHA1.hash(data: Array(text.utf8))
            .map { byte in
                let digits = String(byte, radix: 16)
                return digits.count == 1 ? "0" + digits : digits
            }
            .joined()
    }

    /// The command that runs it; whole where the server does not know it yet.
    func command(keys: [String], arguments: [String], whole: Bool) -> RedisCommand {
        let head = whole ? ["EVAL", self.text] : ["EVALSHA", self.digest]
        return RedisCommand(head + ["\(keys.count)"] + keys + arguments)
    }

    /// What is said to the program: numbers, in this order.
    ///
    /// - the revision of the policies; 1 to charge, 0 to look; how many events the tenant alone is charged;
    /// - how many classes of keys a recipient has, then for the tenant and for each class how many policies there are,
    ///   and each one's interval in nanoseconds and burst;
    /// - for each recipient how many of the keys behind the tenant's are its own, class after class.
    ///
    /// It answers with now in microseconds, the events granted to the tenant alone, a number for each recipient (0
    /// admitted, -1 refused by the tenant's bucket, else by the class of that number), the tenant's arrival times, and for
    /// each recipient that was refused, or was looked at, the arrival times of all its keys.
    static let limits = #"""
        -- Charges one chunk of a request to a tenant's buckets. All times are nanoseconds that a double holds exactly:
        -- a bucket is reckoned with as its backlog, how far its theoretical arrival time lies ahead of now.
        local time = redis.call('TIME')
        local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
        local margin = 0

        local position = 0
        local function nextNumber()
          position = position + 1
          return tonumber(ARGV[position])
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
          if not text then
            for index, policy in ipairs(policies) do
              known.list[index] = {interval = policy.interval, burst = policy.burst, backlog = 0}
            end
            return known
          end
          local stored, rest = string.match(text, '^(%d+) (.*)$')
          stored = tonumber(stored)
          for interval, burst, micros, nanos in string.gmatch(rest, '(%d+) (%d+) (%d+)(%d%d%d)') do
            local policy = {interval = tonumber(interval), burst = tonumber(burst)}
            local backlog = (tonumber(micros) - now) * 1000 + tonumber(nanos)
            local refill = policy.interval * policy.burst
            -- Only a clock that was set back can have put it so far ahead; its readings may differ by a second.
            if backlog > refill + 1000000000 then
              backlog = refill
              known.isDirty = true
            end
            policy.backlog = math.max(0, backlog)
            known.list[#known.list + 1] = policy
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

        -- The arrival times of a bucket in the terms of whoever asks.
        local function arrivals(known)
          local words = {}
          for index, policy in ipairs(carried(known.list, known.asked)) do
            words[index] = string.format('%d%03d', now + math.floor(policy.backlog / 1000), policy.backlog % 1000)
          end
          return table.concat(words, ' ')
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
        local outcomes = {}
        local states = {}
        while position < #ARGV do
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
          outcomes[#outcomes + 1] = string.format('%d', outcome)
          if outcome ~= 0 or not charges then
            for index = 1, size do states[#states + 1] = members[index] end
          end
        end

        if charges then
          for key, known in pairs(buckets) do
            if known.isDirty then
              local words = {string.format('%d', known.revision)}
              local latest = 0
              for _, policy in ipairs(known.list) do
                words[#words + 1] = string.format(
                  '%d %d %d%03d', policy.interval, policy.burst,
                  now + math.floor(policy.backlog / 1000), policy.backlog % 1000
                )
                latest = math.max(latest, policy.backlog)
              end
              local life = math.ceil(latest / 1000000) + margin
              if life > 0 then
                redis.call('SET', key, table.concat(words, ' '), 'PX', string.format('%d', life))
              end
            end
          end
        end

        local reply = {
          string.format('%d', now), string.format('%d', granted), table.concat(outcomes, ' '),
          tenant and arrivals(tenant) or ''
        }
        for _, known in ipairs(states) do reply[#reply + 1] = arrivals(known) end
        return reply
        """#
}
