import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@Suite("Administration and audit", .timeLimit(.minutes(10)))
struct AdministrationAuditTests {
    /// An operator's action on the tenant `acme` or its first key.
    struct Deed: Sendable, CustomTestStringConvertible {
        let action: String
        let perform: @Sendable (Administration, TenantID, String) async throws -> Void

        var testDescription: String { self.action }

        static let all = [
            Deed(action: "tenant.put") { administration, tenant, _ in
                let draft = Tenant.Draft(displayName: "Changed", upstream: .legacy)
                _ = try await administration.put(draft, id: tenant, origin: .sample)
            },
            Deed(action: "tenant.delete") { administration, tenant, _ in
                try await administration.deleteTenant(tenant, origin: .sample)
            },
            Deed(action: "credential.put") { administration, tenant, _ in
                let credential = LegacyCredential(serverKey: Secret("canary-server-key"), endpoint: nil)
                _ = try await administration.put(credential, tenant: tenant, origin: .sample)
            },
            Deed(action: "key.create") { administration, tenant, _ in
                let draft = APIKey.Draft(name: "new", scopes: [])
                _ = try await administration.createKey(draft, tenant: tenant, origin: .sample)
            },
            Deed(action: "key.rotate") { administration, tenant, key in
                _ = try await administration.rotateKey(key, tenant: tenant, overlapSeconds: 5, origin: .sample)
            },
            Deed(action: "key.revoke") { administration, tenant, key in
                try await administration.revokeKey(key, tenant: tenant, origin: .sample)
            },
            Deed(action: "limits.put") { administration, tenant, _ in
                try await administration.putLimits(of: tenant, origin: .sample) { _ in LimitOverrides(topic: []) }
            },
        ]
    }

    private let fixture: AdministrationFixture

    init() async throws {
        self.fixture = try await AdministrationFixture()
    }

    /// Runs a test with the audit log, the tenant `acme` and a key.
    private func run(_ body: @Sendable (TenantID, String) async throws -> Void) async throws {
        try await self.fixture.run { acme in
            let draft = APIKey.Draft(name: "first", scopes: [.sendMessages])
            let (key, _) = try await self.fixture.administration.createKey(draft, tenant: acme, origin: .sample)
            try await body(acme, key.id)
        }
    }

    /// The records after the creation of the first key.
    private var records: [AuditRecord] { Array(self.fixture.records.dropFirst(2)) }

    /// The contents of the directory's store as text.
    private func contents() async throws -> String {
        var dumped = ""
        dump(try await self.fixture.store.contents(), to: &dumped)
        return dumped
    }

    @Test("The intent is recorded before the change reaches the store, and the outcome after it", arguments: Deed.all)
    func intentAndOutcome(deed: Deed) async throws {
        try await self.run { acme, key in
            try await deed.perform(self.fixture.administration, acme, key)
            let witnessed = try #require(self.fixture.witnessed.current.last)
            #expect(witnessed.last?.action == deed.action)
            #expect(witnessed.last?.outcome == .intent)
        }
        #expect(self.records.map(\.action) == [deed.action, deed.action])
        #expect(self.records.map(\.outcome) == [.intent, .done])
        for record in self.records {
            #expect((record.tenant, record.principal, record.method) == ("acme", "admin", "POST"))
            #expect((record.requestID, record.traceID, record.code) == ("request-1", RequestTrace.sampleID, nil))
            #expect(record.object?.isEmpty == false)
            #expect(!"\(record)".contains("canary"))
        }
    }

    @Test("A change that the store refuses is recorded as failed, and changes nothing", arguments: Deed.all)
    func failedChange(deed: Deed) async throws {
        try await self.run { acme, key in
            let (before, snapshot) = (try await self.contents(), self.fixture.directory.snapshot)
            self.fixture.store.refuseChanges()
            let error = await #expect(throws: GatewayError.self) {
                try await deed.perform(self.fixture.administration, acme, key)
            }
            #expect(error?.code == .storeUnavailable)
            #expect(try await self.contents() == before)
            #expect(self.fixture.directory.snapshot === snapshot)
        }
        #expect(self.records.map(\.action) == [deed.action, deed.action])
        #expect(self.records.map(\.outcome) == [.intent, .failed])
        #expect(self.records.map(\.code) == [nil, "store_unavailable"])
    }

    @Test("If the audit refuses the intent, nothing changes", arguments: Deed.all)
    func refusedAudit(deed: Deed) async throws {
        try await self.run { acme, key in
            let (before, snapshot) = (try await self.contents(), self.fixture.directory.snapshot)
            let changes = self.fixture.witnessed.current.count
            self.fixture.auditStore.refuse()
            let error = await #expect(throws: GatewayError.self) {
                try await deed.perform(self.fixture.administration, acme, key)
            }
            #expect(error?.code == .auditUnavailable)
            #expect(try await self.contents() == before)
            #expect(self.fixture.directory.snapshot === snapshot)
            #expect(self.fixture.witnessed.current.count == changes)
            self.fixture.auditStore.refuse(false)
        }
        #expect(self.records.isEmpty)
    }

    @Test("If the audit fails after a change, the change succeeds and its record follows", arguments: Deed.all)
    func lostAudit(deed: Deed) async throws {
        try await self.run { acme, key in
            let refused = self.fixture.auditStore.current.refused
            self.fixture.losesAudit.change { $0 = true }
            async let answer: Void = deed.perform(self.fixture.administration, acme, key)
            try await self.fixture.auditStore.wait { $0.refused > refused }
            #expect(self.records.map(\.outcome) == [.intent])
            self.fixture.losesAudit.change { $0 = false }
            self.fixture.auditStore.refuse(false)
            try await answer
        }
        #expect(self.records.map(\.action) == [deed.action, deed.action])
        #expect(self.records.map(\.outcome) == [.intent, .done])
    }

    @Test("A change whose answer was lost is looked up, and it succeeds and is recorded as done", arguments: Deed.all)
    func lostAnswer(deed: Deed) async throws {
        try await self.run { acme, key in
            self.fixture.store.loseAnswers()
            try await deed.perform(self.fixture.administration, acme, key)
        }
        #expect(self.records.map(\.outcome) == [.intent, .done])
    }

    @Test("A change that can't be looked up after a lost answer is recorded as unknown and takes effect")
    func unknownOutcome() async throws {
        try await self.run { acme, key in
            self.fixture.store.loseAnswers()
            self.fixture.store.refuseReads()
            let error = await #expect(throws: GatewayError.self) {
                try await self.fixture.administration.revokeKey(key, tenant: acme, origin: .sample)
            }
            #expect(error?.code == .outcomeUnknown)
            let refusal = try Refusal(#require(error))
            #expect(!refusal.code.isRetryable)
            #expect(refusal.detail?.contains("look before you repeat it") == true)
            self.fixture.store.refuseReads(false)
            // It takes effect without another request.
            while self.fixture.directory.snapshot.principals[key]?.key.revokedAt == nil { await Task.yield() }
        }
        #expect(self.records.map(\.outcome) == [.intent, .unknown])
        #expect(self.records.map(\.code) == [nil, "outcome_unknown"])
    }

    @Test("A cancelled request of an operator records both intent and outcome", arguments: [false, true])
    func cancelledOperator(losesAnswer: Bool) async throws {
        try await self.run { acme, key in
            self.fixture.store.loseAnswers(losesAnswer)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.cancelAll()
                group.addTask {
                    try await self.fixture.administration.revokeKey(key, tenant: acme, origin: .sample)
                }
                try await group.waitForAll()
            }
            #expect(self.fixture.directory.snapshot.principals[key]?.key.revokedAt != nil)
        }
        #expect(self.records.map(\.outcome) == [.intent, .done])
    }

    @Test("The audit records a tenant's client names only if they change")
    func clientNames() async throws {
        try await self.fixture.run { acme in
            let names = ["orders.internal", "spiffe://example.org/orders"].compactMap { ClientName($0) }
            for clientNames in [names, names, [], []] {
                let draft = Tenant.Draft(displayName: "Acme", upstream: .legacy, clientNames: clientNames)
                let (tenant, _) = try await self.fixture.administration.put(draft, id: acme, origin: .sample)
                #expect(tenant.clientNames == clientNames)
                #expect(try self.fixture.profile()?.tenant.clientNames == clientNames)
            }
            let objects = self.fixture.records.filter { $0.outcome == .done }.map(\.object)
            #expect(
                objects == [
                    "acme client names: orders.internal spiffe://example.org/orders", "acme", "acme client names: none",
                    "acme",
                ]
            )
        }
    }
}
