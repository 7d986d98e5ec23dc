import GatewayCore
import GatewayStorage
import Testing

@Suite("SQLAdminTokenStore")
struct AdminTokenStoreTests {
    private static func token(_ name: String, _ role: OperatorRole, end: Timestamp? = nil) -> AdminToken {
        AdminToken(name: name, role: role, createdAt: DirectoryFixtures.start, expiresAt: end, digest: [1, 0, 255])
    }

    private static func with(_ kind: StoreKind, _ body: (SQLAdminTokenStore) async throws -> Void) async throws {
        try await kind.withDatabase { try await body(SQLAdminTokenStore(database: $0)) }
    }

    @Test("Tokens are read back unchanged, by name", arguments: StoreKind.available)
    func roundTrip(kind: StoreKind) async throws {
        try await Self.with(kind) { store in
            let end = DirectoryFixtures.start.advanced(by: .seconds(60))
            let tokens = [Self.token("a", .viewer), Self.token("b", .operator, end: end), Self.token("c", .admin)]
            for token in tokens.reversed() { try await store.add(token, atMost: 3) }
            #expect(try await store.tokens() == tokens)
            // An attempt whose answer was lost is repeated.
            try await store.add(tokens[0], atMost: 3)
            await #expect(throws: GatewayError.self) { try await store.add(Self.token("a", .admin), atMost: 9) }
            await #expect(throws: GatewayError.self) { try await store.add(Self.token("d", .admin), atMost: 3) }
            #expect(try await store.tokens() == tokens)
        }
    }

    @Test("Of the last two admins one can be removed, however many try at once", arguments: StoreKind.available)
    func last(kind: StoreKind) async throws {
        try await Self.with(kind) { store in
            for name in ["a", "b"] { try await store.add(Self.token(name, .admin), atMost: 9) }
            let removed = await withTaskGroup(of: Bool.self) { group in
                for name in ["a", "b", "a", "b"] {
                    group.addTask { (try? await store.remove(name, keepsAdmin: true)) ?? false }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(removed == 1)
            let left = try #require(try await store.tokens().first)
            #expect(try await store.remove(left.name, keepsAdmin: false))
            #expect(try await !store.remove(left.name, keepsAdmin: false))
            #expect(try await store.tokens().isEmpty)
        }
    }
}
