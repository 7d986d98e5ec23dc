import GatewayCore
import GatewayStorage
import Testing

@Suite("SQLConsoleSessionStore")
struct ConsoleSessionStoreTests {
    private static let start = DirectoryFixtures.start

    private static func session(_ digest: UInt8, at time: Timestamp = Self.start) -> ConsoleSession {
        ConsoleSession(
            digest: [digest],
            tokenName: digest == 0 ? nil : "alice",
            ownerDigest: [7],
            createdAt: time,
            usedAt: time
        )
    }

    private static func with(_ kind: StoreKind, _ body: (SQLConsoleSessionStore) async throws -> Void) async throws {
        try await kind.withDatabase { try await body(SQLConsoleSessionStore(database: $0)) }
    }

    @Test("A session is read back unchanged, and later with the time of its use", arguments: StoreKind.available)
    func roundTrip(kind: StoreKind) async throws {
        try await Self.with(kind) { store in
            for digest in [0, 1] as [UInt8] {
                var session = Self.session(digest)
                try await store.add(session)
                // An attempt whose answer was lost is repeated.
                try await store.add(session)
                #expect(try await store.session([digest]) == session)
                session.usedAt = Self.start.advanced(by: .seconds(9))
                try await store.touch([digest], at: session.usedAt)
                // Another replica's clock may be behind.
                try await store.touch([digest], at: Self.start)
                #expect(try await store.session([digest]) == session)
            }
            try await store.remove([0])
            try await store.remove([0])
            #expect(try await store.session([0]) == nil)
            #expect(try await store.session([1]) != nil)
        }
    }

    @Test("A new session displaces those that are over", arguments: StoreKind.available)
    func bounded(kind: StoreKind) async throws {
        try await Self.with(kind) { store in
            try await store.add(Self.session(1))
            try await store.add(Self.session(2))
            let later = Self.start.advanced(by: ConsoleSession.idleLimit)
            try await store.touch([2], at: later)
            try await store.add(Self.session(3, at: later))
            #expect(try await store.session([1]) == nil)
            #expect(try await store.session([2]) != nil)
            let end = Self.start.advanced(by: ConsoleSession.lifetime)
            try await store.touch([2], at: end)
            try await store.touch([3], at: end)
            try await store.add(Self.session(4, at: end))
            #expect(try await store.session([2]) == nil)
            #expect(try await store.session([3]) != nil)
        }
    }
}
