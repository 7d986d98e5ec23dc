import GatewayCore
import Testing

@testable import GatewayStorage

/// The contract of every replica store.
struct ReplicaStoreTests {
    private static let (one, two) = (ReplicaID(text: "a/1"), ReplicaID(text: "b/1"))

    @Test("A heartbeat returns all replicas that have not left", arguments: StoreKind.available)
    func heartbeats(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let store = SQLReplicaStore(database: database, masterKey: "k")
            #expect(try await store.heartbeat(of: Self.two).map(\.id) == [Self.two])
            for _ in 1...2 { #expect(try await store.heartbeat(of: Self.one).map(\.id) == [Self.one, Self.two]) }
            try await store.leave(Self.two)
            try await store.leave(Self.two)
            #expect(try await store.heartbeat(of: Self.one).map(\.id) == [Self.one])
            // A removed replica that still runs returns with its next heartbeat.
            #expect(try await store.heartbeat(of: Self.two).map(\.id) == [Self.one, Self.two])
        }
    }

    @Test("A replica that leaves is removed, unless its audit chain is open", arguments: StoreKind.available)
    func leaving(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let (store, audit, fixtures) = (
                SQLReplicaStore(database: database, masterKey: "key"), SQLAuditStore(database: database),
                AuditFixtures()
            )
            for id in [Self.one, Self.two] { _ = try await store.heartbeat(of: id) }
            var chain = AuditChain(writer: 1)
            let first = chain.append(AuditFixtures.record(1))
            try await audit.begin(first, head: fixtures.sealer.head(of: chain, state: .open), by: Self.one)
            for id in [Self.one, Self.two] { try await store.leave(id) }
            #expect(try await store.heartbeat(of: Self.one).map(\.id) == [Self.one])
            try await fixtures.write([AuditFixtures.record(2)], to: &chain, state: .closed, in: audit)
            try await store.leave(Self.one)
            #expect(try await store.heartbeat(of: Self.two).map(\.id) == [Self.two])
        }
    }

    @Test("The master key may change only if all live replicas use the new one; only their chains count as live")
    func livingReplicas() async throws {
        try await withPostgreSQLDatabase { database in
            let audit = SQLAuditStore(database: database)
            let (old, new) = (
                SQLReplicaStore(database: database, masterKey: "old"),
                SQLReplicaStore(database: database, masterKey: "new")
            )
            @Sendable func requireNew(_ db: any SQLConnection) throws {
                try SQLReplicaStore.requireMasterKey("new", db)
            }
            try await database.write(scope: .gateway, isolation: .readCommitted) { try requireNew($0) }
            _ = try await new.heartbeat(of: Self.one)
            let gone = ReplicaID(text: "gone/1")
            for id in [Self.two, gone] { _ = try await old.heartbeat(of: id) }
            for (writer, replica) in [(1, Self.one), (2, Self.two), (3, gone)] {
                var chain = AuditChain(writer: writer)
                let record = chain.append(AuditFixtures.record(writer))
                let head = AuditFixtures().sealer.head(of: chain, state: .open)
                try await audit.begin(record, head: head, by: replica)
            }
            try await database.write(scope: .gateway, isolation: .readCommitted) { db in
                _ = try db.execute("DELETE FROM replicas WHERE id = 'gone/1'")
            }
            #expect(try await SQLReplicaStore.masterKeys(in: database) == ["old", "new"])
            #expect(try await audit.liveWriters() == [1, 2])
            await expectError(.conflict, "another master key (b/1)") {
                try await database.write(scope: .gateway, isolation: .readCommitted) { try requireNew($0) }
            }
            // Silent for a minute.
            try await database.write(scope: .gateway, isolation: .readCommitted) { db in
                _ = try db.execute("UPDATE replicas SET seen_at = seen_at - 60000000 WHERE id = 'b/1'")
            }
            #expect(try await audit.liveWriters() == [1])
            #expect(try await SQLReplicaStore.masterKeys(in: database) == ["new"])
            try await database.write(scope: .gateway, isolation: .readCommitted) { try requireNew($0) }
        }
    }

    @Test("Silence is measured by the database's own clock")
    func age() async throws {
        try await withClockedDatabase { database, clock in
            let store = SQLReplicaStore(database: database, masterKey: "k")
            _ = try await store.heartbeat(of: Self.one)
            clock.advance(by: .seconds(7))
            let sightings = [
                Replicas.Sighting(id: Self.one, age: .seconds(7)), Replicas.Sighting(id: Self.two, age: .zero),
            ]
            #expect(try await store.heartbeat(of: Self.two) == sightings)
        }
    }

    @Test("A replica is removed after 60 seconds without a heartbeat, and not before")
    func silent() async throws {
        try await withClockedDatabase { database, clock in
            let store = SQLReplicaStore(database: database, masterKey: "key")
            for id in [Self.one, Self.two] { _ = try await store.heartbeat(of: id) }
            clock.advance(by: .milliseconds(59_999))
            try await store.removeSilent(for: .seconds(60))
            #expect(try await store.heartbeat(of: Self.two).map(\.id) == [Self.one, Self.two])
            clock.advance(by: .milliseconds(1))
            try await store.removeSilent(for: .seconds(60))
            #expect(try await store.heartbeat(of: Self.two).map(\.id) == [Self.two])
        }
    }
}
