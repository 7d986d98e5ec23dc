import GatewayCore
import GatewayTestKit

/// An administration over stores in memory, with a log that can be run beside a test.
struct AdministrationFixture {
    let clock = ManualClock()
    let auditStore = InMemoryAuditStore()
    /// What the audit held when each change reached the directory's store.
    let witnessed = Observed<[[AuditRecord]]>([])
    /// Whether the audit fails from the next change on.
    let losesAudit = Observed(false)
    let store: InMemoryDirectoryStore
    let directory: Directory
    let audit: AuditLog
    let administration: Administration

    init() throws {
        let (auditStore, witnessed, losesAudit) = (self.auditStore, self.witnessed, self.losesAudit)
        self.store = InMemoryDirectoryStore { _ in
            let records = auditStore.current.records.map(\.record)
            witnessed.change { $0.append(records) }
            if losesAudit.current { auditStore.refuse() }
        }
        self.directory = try .sample(store: self.store)
        self.audit = .sample(store: auditStore, clock: self.clock)
        self.administration = Administration(
            directory: self.directory,
            audit: self.audit,
            masterKey: try .sample(),
            pepper: .sample,
            clock: self.clock
        )
    }

    /// Another replica's administration of the same store, which has not read anything yet.
    ///
    /// One that takes the store for its own hears of other's changes only where they get in its way.
    func replica(isShared: Bool, over store: (any DirectoryStore)? = nil) throws -> Administration {
        Administration(
            directory: try .sample(
                store: store ?? self.store,
                maxStale: isShared ? .seconds(900) : nil
            ),
            audit: self.audit,
            masterKey: try .sample(),
            pepper: .sample,
            clock: self.clock
        )
    }

    /// Runs a test beside the log, with the tenant `acme` in place and a clock that has moved on since.
    func run(_ body: @Sendable (TenantID) async throws -> Void) async throws {
        try await self.audit.whileRunning {
            try await self.auditStore.wait { $0.batches.count == 1 }
            let acme = try TenantID.sample()
            let draft = TenantDraft(displayName: "Acme", upstream: .legacy)
            _ = try await self.administration.put(draft, id: acme, origin: .sample)
            self.clock.advance(by: .seconds(60))
            try await body(acme)
        }
    }

    /// The records of what operators did since `acme` was put, in order.
    var records: [AuditRecord] {
        self.auditStore.current.records.map(\.record).filter { $0.principal == "admin" }.dropFirst(2).map(\.self)
    }

    func profile(_ name: String = "acme") throws -> TenantProfile? {
        self.directory.snapshot.tenants[try .sample(name)]
    }

    /// How the present directory judges a key.
    func accepts(_ key: APIKey) -> Bool {
        let authenticator = Authenticator(directory: self.directory, pepper: .sample)
        switch authenticator.authenticate(key: key.secret.revealBytes()[...], clientNames: [], now: self.clock.now()) {
        case .authenticated: return true
        case .refused: return false
        }
    }
}
