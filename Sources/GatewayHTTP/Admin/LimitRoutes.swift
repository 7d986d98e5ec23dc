import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Shows the limits in force for a tenant and replaces its own.
struct LimitRoutes {
    let administration: Administration

    var endpoints: [any Endpoint] {
        [
            Handler(.get, "/admin/v1/tenants/{tenant}/limits", self.get),
            Handler(.put, "/admin/v1/tenants/{tenant}/limits", self.put),
        ]
    }

    @Sendable
    private func get(_ exchange: Exchange) async throws -> HTTPServerResponse {
        Self.response(try self.administration.profile(of: exchange.tenantID))
    }

    @Sendable
    private func put(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let id = try exchange.tenantID
        let limits = try LimitOverrides(exchange.members(limits: .small))
        try await self.administration.putLimits(limits, tenant: id, origin: exchange.origin)
        return Self.response(try self.administration.profile(of: id))
    }

    private static func response(_ profile: TenantProfile) -> HTTPServerResponse {
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
        return HTTPServerResponse(json: writer.finish())
    }
}

extension LimitOverrides {
    fileprivate init(_ members: JSONMembers) throws(Refusal) {
        var problems = FieldProblems()
        var overrides = LimitOverrides()
        for member in members where !problems.isFull {
            let key = member.key
            guard let scope = key.protocolWord.flatMap(LimitScope.init) else {
                problems.unknown(JSONPointer().appending(key))
                continue
            }
            overrides[scope] = problems.policies(member.value, at: JSONPointer().appending(key))
        }
        guard problems.list.isEmpty else { throw Refusal(problems.list) }
        self = overrides
    }
}

extension FieldProblems {
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
        var parts: [String: Int] = [:]
        for member in members where !self.isFull {
            let key = member.key
            switch key.protocolWord {
            case "rate", "burst":
                parts[key] = self.integer(member.value, in: 1...RatePolicy.maxCount, at: pointer.appending(key))
            case "per_s":
                let range = 1...RatePolicy.maxPeriodSeconds
                parts[key] = self.integer(member.value, in: range, at: pointer.appending(key))
            default:
                self.unknown(pointer.appending(key))
            }
        }
        guard self.list.count == earlierCount else { return nil }
        guard let rate = parts["rate"], let period = parts["per_s"], let burst = parts["burst"] else {
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
