import GatewayCore
import GatewayStorage
import GatewayTestKit
import Testing

@Suite("A replica that returns", .timeLimit(.minutes(10)))
struct ReturningReplicaTests {
    @Test("A replica continues after others closed its chain, with each record once", arguments: StoreKind.available)
    func returning(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let (store, sealer) = (SQLAuditStore(database: database), AuditSealer(auditKey: .sample("audit")))
            let sharing = AuditSharing(replica: ReplicaID(text: "one"), registry: store)
            _ = try await SQLReplicaStore(database: database, masterKey: "key").heartbeat(of: sharing.replica)
            let log = AuditLog.sample(store: store, spool: InMemorySpoolFile(), sharing: sharing)
            try await log.whileRunning {
                #expect(await log.whenOpen())
                for round in 1...3 {
                    try await log.commit(.sample("before \(round)"))
                    let head = try #require(try await store.heads().last)
                    var chain = head.chain
                    let closing = chain.append(.sample("audit.recovered"))
                    try await store.append([closing], head: sealer.head(of: chain, state: .recovered))
                    try log.place().fill(.sample("after \(round)"))
                }
            }
            #expect(try await store.heads().map(\.state) == [.recovered, .recovered, .recovered, .closed])
            var actions: [String] = []
            for writer in 1...4 {
                actions += try await store.records(of: writer, after: 0, limit: 100).map(\.record.action)
            }
            let expected = (1...3).flatMap { ["before \($0)", "after \($0)"] }
            #expect(actions.filter { !$0.hasPrefix("audit.") } == expected)
            let verifier = AuditVerifier(store: store, sealer: sealer)
            #expect(try await verifier.verify(isLive: false) == .intact(records: actions.count))
        }
    }
}
