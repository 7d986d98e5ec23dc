import GatewayCore
import GatewayTestKit
import Testing

@Suite("Authenticator")
struct AuthenticatorTests {
    private let store = TestDirectoryStore()
    private let key = APIKey.generate()
    private let now = Timestamp.sample

    /// Authenticates a text against a directory that holds the key.
    private func authenticate(
        _ text: String?,
        isTenantDisabled: Bool = false,
        expiresAt: Timestamp? = nil,
        revokedAt: Timestamp? = nil,
        clientNames: [String] = [],
        by names: [String] = [],
        pepper: APIKey.Pepper = .sample
    ) async throws -> Authenticator.Outcome {
        try await self.store.apply(
            .putTenant(.sample(isDisabled: isTenantDisabled, clientNames: clientNames), salt: [1])
        )
        try await self.store.apply(.putKey(.sample(of: self.key, expiresAt: expiresAt, revokedAt: revokedAt)))
        let directory = try await Directory.sample(store: self.store)
        return Authenticator(directory: directory, pepper: pepper)
            .authenticate(key: text.map { Array($0.utf8)[...] }, clientNames: names, now: self.now)
    }

    private func refusal(_ outcome: Authenticator.Outcome) -> Authenticator.Refusal? {
        if case .refused(let refusal) = outcome { refusal } else { nil }
    }

    private var text: String { self.key.secret.revealText() }

    @Test("A known key authenticates its principal")
    func accepted() async throws {
        let outcome = try await self.authenticate(self.text)
        guard case .authenticated(let principal) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(principal.profile.id == (try .sample()))
        #expect(principal.key.id == self.key.id)
        #expect(principal.auditName == "key:\(self.key.id)")
        #expect(principal.has(.sendMessages))
    }

    @Test("An absent key is refused as missing, an invalid text as malformed, a wrong id, secret or pepper as unknown")
    func texts() async throws {
        let other = APIKey.generate().secret.revealText()
        let forged = try #require(APIKey.sample(body: "fgw_\(self.key.id)_\(other.split(separator: "_")[2])"))
        #expect(forged.id == self.key.id)
        let refusals: [(String?, Authenticator.Refusal)] = [
            (nil, .missing), ("", .malformed), (String(self.text.dropLast()), .malformed), (other, .unknown),
            (forged.secret.revealText(), .unknown),
        ]
        for (text, refusal) in refusals { #expect(self.refusal(try await self.authenticate(text)) == refusal) }
        let otherPepper = APIKey.Pepper(.sample("other pepper"))
        #expect(self.refusal(try await self.authenticate(self.text, pepper: otherPepper)) == .unknown)
    }

    @Test("A key is dead if it is revoked, and from the moment of its expiry")
    func dead() async throws {
        #expect(self.refusal(try await self.authenticate(self.text, revokedAt: self.now)) == .dead)
        for (microseconds, refusal) in [(1, nil), (0, .dead), (-1, .dead)] as [(Int, Authenticator.Refusal?)] {
            let expiry = self.now.advanced(by: .microseconds(microseconds))
            #expect(self.refusal(try await self.authenticate(self.text, expiresAt: expiry)) == refusal)
        }
    }

    @Test("The key of a tenant that this version can't read is refused as unreadable, a dead or forged one as unknown")
    func unreadable() async throws {
        let (acme, dead) = (try TenantID.sample(), APIKey.generate())
        try await self.store.apply(.putTenant(.sample(), salt: [1]))
        try await self.store.apply(.putKey(.sample(of: self.key)))
        try await self.store.apply(.putKey(.sample(of: dead, revokedAt: self.now)))
        let store = LaterStore(contents: Observed(try await self.store.contents()))
        let directory = try await Directory.sample(store: store)
        @Sendable func refusal(_ text: String, in directory: Directory) -> Authenticator.Refusal? {
            let authenticator = Authenticator(directory: directory, pepper: .sample)
            let bytes = Array(text.utf8)[...]
            return self.refusal(authenticator.authenticate(key: bytes, clientNames: [], now: self.now))
        }
        #expect(refusal(self.text, in: directory) == nil)
        try await directory.whileRunning {
            store.makeUnreadable(acme)
            try await directory.catchUp()
            let other = APIKey.generate().secret.revealText()
            let forged = try #require(APIKey.sample(body: "fgw_\(self.key.id)_\(other.split(separator: "_")[2])"))
            #expect(refusal(self.text, in: directory) == .unreadable)
            #expect(refusal(dead.secret.revealText(), in: directory) == .unknown)
            #expect(refusal(forged.secret.revealText(), in: directory) == .unknown)
            // A directory that loads everything gives the same answer.
            #expect(refusal(self.text, in: try await .sample(store: store)) == .unreadable)
            store.removeAll()
            try await directory.catchUp()
            #expect(refusal(self.text, in: directory) == .unknown)
        }
    }

    @Test("A disabled tenant's keys are refused, and accepted again when it is enabled")
    func disabled() async throws {
        #expect(self.refusal(try await self.authenticate(self.text, isTenantDisabled: true)) == .disabled)
        #expect(self.refusal(try await self.authenticate(self.text, isTenantDisabled: false)) == nil)
    }

    @Test(
        "A tenant bound to client names serves only certificates with one of them",
        arguments: [
            (["orders.internal"], [], false), (["orders.internal"], ["orders.internal"], true),
            (["orders.internal"], ["billing.internal"], false), (["orders.internal"], ["orders.internal.evil"], false),
            (["Orders.Internal"], ["orders.internal"], true),
            (["a.internal", "spiffe://example.org/b"], ["x", "spiffe://example.org/b"], true),
            (["spiffe://example.org/b"], ["spiffe://example.org/B"], false), ([], [], true), ([], ["anybody"], true),
        ] as [([String], [String], Bool)]
    )
    func clientNames(asked: [String], given: [String], isServed: Bool) async throws {
        let refusal = self.refusal(try await self.authenticate(self.text, clientNames: asked, by: given))
        #expect(refusal == (isServed ? nil : .certificate))
    }

    @Test("A matching certificate does not make a malformed or revoked key valid")
    func certificateIsNotEnough() async throws {
        let name = "orders.internal"
        let forged = String(self.text.dropLast())
        #expect(self.refusal(try await self.authenticate(forged, clientNames: [name], by: [name])) == .malformed)
        let revoked = try await self.authenticate(self.text, revokedAt: self.now, clientNames: [name], by: [name])
        #expect(self.refusal(revoked) == .dead)
    }
}

@Suite("ClientName")
struct ClientNameTests {
    @Test(
        "DNS names are converted to lower case, and URIs are kept unchanged",
        arguments: [
            ("orders.internal", "orders.internal"), ("Orders.Internal", "orders.internal"), ("a", "a"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"), ("_svc.example", "_svc.example"),
            ("10.0.0.7", "10.0.0.7"), (String(repeating: "a", count: 63), String(repeating: "a", count: 63)),
            ("spiffe://example.org/ns/shop/sa/orders", "spiffe://example.org/ns/shop/sa/orders"),
            ("SPIFFE://Example.org/A", "SPIFFE://Example.org/A"), ("urn:uuid:1", "urn:uuid:1"),
            ("a+b-c.d:e", "a+b-c.d:e"),
        ]
    )
    func accepted(text: String, name: String) {
        #expect(ClientName(text)?.text == name)
    }

    @Test(
        "A text that is neither a DNS name nor a URI is refused",
        arguments: [
            "", " ", ".", "a.", ".a", "a..b", "*.example.org", "*", "-a", "a-", "a b", "a/b", "bücher.example", "a\0b",
            "a@example.org", String(repeating: "a", count: 64),
            Array(repeating: "abcdefg", count: 32).joined(separator: "."),
            ":", "a:", ":b", "1a:b", "-a:b", "a_b:c", "spiffe://a b", "spiffe://ä", "spiffe://a\n", "a\0:b",
            "u:" + String(repeating: "x", count: 511),
        ]
    )
    func refused(text: String) {
        #expect(ClientName(text) == nil)
    }

    @Test("A URI may have 512 bytes")
    func longest() {
        #expect(ClientName("u:" + String(repeating: "x", count: 510)) != nil)
    }
}

/// A directory store that a later release has written to.
private struct LaterStore: DirectoryStore {
    let contents: Observed<Directory.Contents>

    /// Replaces a tenant's row by one that this version can't read.
    func makeUnreadable(_ tenant: TenantID) {
        self.contents.change { contents in
            contents.tenants.removeAll { $0.id == tenant }
            contents.refused.append(Directory.RefusedRow(.tenant, tenant.text, of: tenant))
            contents.version.number += 1
        }
    }

    func removeAll() {
        self.contents.change { contents in
            let version = contents.version
            contents = Directory.Contents()
            contents.version = Directory.Version(version.number + 1, in: version.origin)
        }
    }

    func load() async throws(GatewayError) -> Directory.Contents { self.contents.current }

    func changes(since seen: Directory.Version) async throws(GatewayError) -> Directory.News {
        let contents = self.contents.current
        return contents.version == seen ? .none : .all(contents)
    }

    func apply(
        _ change: Directory.Change,
        plannedAt version: Directory.Version
    ) async throws(GatewayError) -> Directory.Contents? { nil }
}
