import Foundation
import GatewayCore
import Testing

enum DirectoryFixtures {
    static let start = Timestamp(microseconds: 1_790_000_000_123_456)

    static func tenant(_ id: String = "acme", name: String = "Acme") throws -> Tenant {
        Tenant(
            id: try #require(TenantID(id)),
            displayName: name,
            upstream: .legacy,
            projectID: "acme-1234",
            senderID: nil,
            isDisabled: false,
            createdAt: self.start,
            updatedAt: self.start
        )
    }

    static func credential(_ tenant: String = "acme", version: Int = 1) throws -> StoredCredential {
        StoredCredential(
            tenant: try #require(TenantID(tenant)),
            kind: .legacy,
            version: version,
            envelope: Envelope(wrappedKey: Data([1, 2, UInt8(version)]), sealed: Data([0, 255, UInt8(version)])),
            endpoint: "http://127.0.0.1:8080/fcm/send",
            fingerprint: "0123456789abcdef",
            createdAt: self.start
        )
    }

    static func key(_ id: String = "k1", tenant: String = "acme") throws -> APIKey.Record {
        APIKey.Record(
            id: id,
            tenant: try #require(TenantID(tenant)),
            name: "Backend",
            digest: (0..<32).map { UInt8($0) },
            scopes: [.sendMessages, .readAudit],
            topicPrefixes: ["news-", "wetter \"süd\""],
            createdAt: self.start,
            expiresAt: nil,
            revokedAt: nil
        )
    }

    static func policy(rate: Int) throws -> RatePolicy {
        try #require(RatePolicy(rate: rate, periodSeconds: 60, burst: 10))
    }
}
