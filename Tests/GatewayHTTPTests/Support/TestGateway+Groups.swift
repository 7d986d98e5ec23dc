import GatewayCore
import GatewayTestKit

extension TestGateway {
    /// The sender id of `demo`, once it has one.
    static let senderID = "123456789012"

    /// Gives a tenant a sender id.
    func setSender(_ senderID: String? = TestGateway.senderID, tenant: String = "demo") async throws {
        _ = try await self.administration.put(
            TenantDraft(displayName: tenant, upstream: .legacy, senderID: senderID),
            id: .sample(tenant),
            origin: Self.origin
        )
    }

    /// Runs a body with a gateway whose device groups live by FCM's rules.
    static func runWithGroups(
        _ body: @escaping @Sendable (TestGateway, _ key: String, InMemoryGroupUpstream) async throws -> Void
    ) async throws {
        let upstream = InMemoryGroupUpstream()
        try await TestGateway.run(groupUpstream: upstream) { gateway, key in
            try await gateway.setSender()
            try await body(gateway, key, upstream)
        }
    }
}
