import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Shows the limits in force for a tenant, and replaces the tenant's own.
struct LimitRoutes {
    /// The scopes that a body names, each with its policies; `nil` in a merge patch returns a scope to the default.
    private struct Change: Sendable {
        private var policies: [LimitScope: [RatePolicy]?] = [:]

        init(_ members: JSONMembers, isPatch: Bool) throws(Refusal) {
            var problems = FieldProblems()
            for member in members where !problems.isFull {
                let key = member.key
                guard let scope = key.protocolWord.flatMap(LimitScope.init) else {
                    problems.unknown(key, among: LimitScope.allCases.map(\.rawValue))
                    continue
                }
                let isReset = isPatch && member.value.isNull
                self.policies[scope] =
                    .some(isReset ? nil : problems.policies(member.value, at: JSONPointer().appending(key)))
            }
            guard problems.list.isEmpty else { throw Refusal(problems.list) }
        }

        func applied(to overrides: LimitOverrides) -> LimitOverrides {
            self.policies.reduce(into: overrides) { $0[$1.key] = $1.value }
        }
    }

    let administration: Administration

    var endpoints: [any Endpoint] {
        [
            Handler(.get, "/admin/v1/tenants/{tenant}/limits", self.get),
            Handler(.put, "/admin/v1/tenants/{tenant}/limits", self.put),
            Handler(.patch, "/admin/v1/tenants/{tenant}/limits", self.patch),
        ]
    }

    @Sendable
    private func get(_ exchange: Exchange) async throws -> HTTPServerResponse {
        Self.response(try self.administration.profile(of: exchange.tenantID))
    }

    @Sendable
    private func put(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let id = try exchange.tenantID
        let change = try Change(exchange.members(limits: .small), isPatch: false)
        try await self.administration.putLimits(of: id, origin: exchange.origin) { profile throws(GatewayError) in
            try exchange.requireMatch(Self.body(profile))
            return change.applied(to: LimitOverrides())
        }
        return Self.response(try self.administration.profile(of: id))
    }

    @Sendable
    private func patch(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let id = try exchange.tenantID
        let change = try Change(exchange.patchMembers(), isPatch: true)
        try await self.administration.putLimits(of: id, origin: exchange.origin) { profile throws(GatewayError) in
            try exchange.requireMatch(Self.body(profile))
            return change.applied(to: profile.limitOverrides)
        }
        return Self.response(try self.administration.profile(of: id))
    }

    private static func response(_ profile: TenantProfile) -> HTTPServerResponse {
        HTTPServerResponse(taggedJSON: Self.body(profile))
    }

    private static func body(_ profile: TenantProfile) -> ByteBuffer {
        var writer = JSONWriter()
        writer.beginObject()
        for scope in LimitScope.allCases {
            writer.key(scope.rawValue)
            writer.beginArray()
            for policy in profile.limits[scope] {
                writer.beginObject()
                writer.member("rate", policy.rate)
                writer.member("per_s", policy.periodSeconds)
                writer.member("burst", policy.burst)
                writer.endObject()
            }
            writer.endArray()
        }
        writer.beginArray("own")
        let own = profile.limitOverrides.scopes
        for scope in LimitScope.allCases where own.contains(scope) { writer.string(scope.rawValue) }
        writer.endArray()
        writer.endObject()
        return writer.finish()
    }
}

extension FieldProblems {
    private enum PolicyMember: String, CaseIterable {
        case rate
        case period = "per_s"
        case burst
    }

    fileprivate mutating func policies(_ value: JSONValue, at pointer: JSONPointer) -> [RatePolicy]? {
        let most = LimitPolicies.maxPoliciesPerScope
        guard let elements = value.elements, (1...most).contains(elements.count) else {
            self.report(.invalidField, at: pointer, "This must be an array of 1 to \(most) policies")
            return nil
        }
        var policies: [RatePolicy] = []
        for (index, element) in zip(0..., elements) {
            if let policy = self.policy(element, at: pointer.appending(index)) { policies.append(policy) }
        }
        return policies
    }

    private mutating func policy(_ value: JSONValue, at pointer: JSONPointer) -> RatePolicy? {
        guard let members = self.members(value, at: pointer) else { return nil }
        let earlierCount = self.list.count
        var parts: [PolicyMember: Int] = [:]
        for member in members where !self.isFull {
            let key = member.key
            guard let part = key.protocolWord.flatMap(PolicyMember.init) else {
                self.unknown(key, in: pointer, among: PolicyMember.allCases.map(\.rawValue))
                continue
            }
            let range = part == .period ? 1...RatePolicy.maxPeriodSeconds : 1...RatePolicy.maxCount
            parts[part] = self.integer(member.value, in: range, at: pointer.appending(key))
        }
        guard self.list.count == earlierCount else { return nil }
        guard let rate = parts[.rate], let period = parts[.period], let burst = parts[.burst] else {
            self.report(.invalidField, at: pointer, "A policy has rate, per_s and burst")
            return nil
        }
        guard let policy = RatePolicy(rate: rate, periodSeconds: period, burst: burst) else {
            self.report(.invalidField, at: pointer, "A policy must refill its burst within 30 days")
            return nil
        }
        return policy
    }
}
