/// Says what becomes of a request whose recipients were charged, and how long those wait who were refused.
///
/// Every limiter answers by it, from the buckets as they are after the charge; where those are kept is the limiter's own.
package struct LimitWaits {
    /// A recipient of a list whose message is not sent.
    package struct Refused: Sendable {
        var index: Int
        /// The scope of the quota that has no room.
        var scope: LimitScope
        /// When its own quotas have room, in nanoseconds since 1970.
        fileprivate var returns: Int64 = 0

        package init(index: Int, scope: LimitScope) {
            self.index = index
            self.scope = scope
        }
    }

    private let request: LimitRequest
    /// In nanoseconds since 1970.
    private let now: Int64
    private let bucket: (LimitScope, LimitKey) -> LimitBucket

    /// The buckets are asked for when they are needed, only for the tenant and for refused recipients and their members.
    package init(
        _ request: LimitRequest,
        now: Timestamp,
        bucket: @escaping (LimitScope, LimitKey) -> LimitBucket
    ) {
        self.request = request
        self.now = now.microseconds * 1_000
        self.bucket = bucket
    }

    /// What becomes of a request of which so many recipients were judged and these were refused, in order.
    package func admission(refusing refused: [Refused], of count: Int) -> LimitDecision.Admission {
        guard let first = refused.first else { return .all }
        let isNone = refused.count == count
        if isNone, first.scope == .tenant { return .none(self.tenantDenial) }
        switch self.request.recipients {
        case .topics(let keys):
            return .none(Self.denial(.topic, wait: self.topicsWait(keys)))
        case .tenantOnly:
            let queue = refused.map { recipient in
                var recipient = recipient
                recipient.returns = self.now
                return recipient
            }
            return .some(self.denials(queue, of: count, []))
        case .devices(let keys):
            let queue = self.queue(refused, keys)
            // No recipient's quota has room, so one refusal says it all.
            if isNone, let last = queue.max(by: { $0.returns < $1.returns }) {
                let tenant = self.bucket(.tenant, self.request.tenant).wait(for: keys.count, at: self.now)
                return .none(Self.denial(last.scope, wait: max(tenant, last.returns - self.now)))
            }
            return .some(self.denials(queue, of: count, keys))
        }
    }

    /// The denial of a whole request by the tenant's quota: when all of it fits there, or as much as ever does, and a
    /// recipient's own quota has room.
    package var tenantDenial: LimitDenial {
        var count = 1
        var recipients: Int64 = 0
        switch self.request.recipients {
        case .devices(let keys):
            count = keys.count
            // One device with room is enough to send something; the others are told their own times then.
            recipients = keys.isEmpty ? 0 : .max
            for (index, key) in keys.enumerated() where recipients > 0 {
                recipients = min(recipients, self.own(index, key).next - self.now)
            }
        case .topics(let keys):
            recipients = self.topicsWait(keys)
        case .tenantOnly(let calls):
            count = calls
        }
        let tenant = self.bucket(.tenant, self.request.tenant).wait(for: count, at: self.now)
        return Self.denial(.tenant, wait: max(tenant, recipients))
    }

    private func topicsWait(_ keys: [LimitKey]) -> Int64 {
        keys.reduce(0) { max($0, self.bucket(.topic, $1).wait(at: self.now)) }
    }

    /// Quotas as they will be once recipients have come back who were told when.
    private struct Forecast {
        var buckets: [LimitBucket]
        /// When the last of them comes, or now.
        var time: Int64

        /// When one more fits.
        var next: Int64 {
            self.buckets.reduce(self.time) { max($0, self.time + $1.wait(at: self.time)) }
        }

        mutating func charge(at time: Int64) {
            for index in self.buckets.indices { self.buckets[index].charge(1, at: time) }
            self.time = time
        }
    }

    private func own(_ index: Int, _ key: LimitKey) -> Forecast {
        let keys = self.request.members.isEmpty ? [key] : [key] + (self.request.members[index] ?? [])
        var buckets = keys.map { self.bucket(.device, $0) }
        if self.request.isCollapsible { buckets += keys.map { self.bucket(.deviceCollapsible, $0) } }
        return Forecast(buckets: buckets, time: self.now)
    }

    /// The refused recipients with the times at which their own quotas have room, each time one more where a device is
    /// named repeatedly.
    private func queue(_ refused: [Refused], _ keys: [LimitKey]) -> [Refused] {
        var forecasts: [LimitKey: Forecast] = [:]
        return refused.map { recipient in
            var recipient = recipient
            let key = keys[recipient.index]
            var forecast = forecasts[key] ?? self.own(recipient.index, key)
            recipient.returns = self.wholeSeconds(forecast.next)
            forecast.charge(at: recipient.returns)
            forecasts[key] = forecast
            return recipient
        }
    }

    /// Tells every refused recipient when it fits, given that those come back whose turn is before: first those whose own
    /// quotas have room first.
    private func denials(_ queue: [Refused], of count: Int, _ keys: [LimitKey]) -> [LimitDenial?] {
        var denials: [LimitDenial?] = Array(repeating: nil, count: count)
        var tenant = Forecast(buckets: [self.bucket(.tenant, self.request.tenant)], time: self.now)
        // A device that comes late because of the tenant's quota may come as much later each further time.
        var delays: [LimitKey: Int64] = [:]
        for recipient in queue.sorted(by: { ($0.returns, $0.index) < ($1.returns, $1.index) }) {
            let key = keys.isEmpty ? nil : keys[recipient.index]
            let own = recipient.returns + (key.flatMap { delays[$0] } ?? 0)
            let time = self.wholeSeconds(max(own, tenant.next))
            tenant.charge(at: time)
            if let key { delays[key] = time - recipient.returns }
            denials[recipient.index] = Self.denial(recipient.scope, wait: time - self.now)
        }
        return denials
    }

    /// A time that is told in whole seconds from now, at least one.
    private func wholeSeconds(_ time: Int64) -> Int64 {
        self.now + Int64(max(1, LimitTable.seconds(time - self.now))) * 1_000_000_000
    }

    private static func denial(_ scope: LimitScope, wait: Int64) -> LimitDenial {
        LimitDenial(scope: scope, retryAfter: LimitTable.seconds(wait))
    }
}
