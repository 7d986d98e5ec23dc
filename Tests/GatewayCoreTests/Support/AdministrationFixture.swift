import GatewayCore
import GatewayTestKit

/// An administration with an audit log that runs during a test.
struct AdministrationFixture {
    let clock = ManualClock()
    let auditStore = InMemoryAuditStore()
    /// The audit's records at each change of the directory's store.
    let witnessed = Observed<[[AuditRecord]]>([])
    /// True if the audit fails from the next change on.
    let losesAudit = Observed(false)
    let store: TestDirectoryStore
    let directory: Directory
    let audit: AuditLog
    let administration: Administration
    private let others = Observed<[Directory]>([])

    init() async throws {
        let (auditStore, witnessed, losesAudit) = (self.auditStore, self.witnessed, self.losesAudit)
        self.store = TestDirectoryStore { _ in
            let records = auditStore.current.records.map(\.record)
            witnessed.change { $0.append(records) }
            if losesAudit.current { auditStore.refuse() }
        }
        self.directory = try await .sample(store: self.store)
        self.audit = .sample(store: auditStore, clock: self.clock)
        self.administration = Administration(
            directory: self.directory,
            audit: self.audit,
            masterKey: try .sample(),
            pepper: .sample,
            clock: self.clock
        )
    }

    /// Another replica's administration, which has read the store. Call it before ``run(_:)``.
    ///
    /// A replica that does not share the store reads other replicas' changes only after a conflict with them.
    func replica(isShared: Bool, over store: (any DirectoryStore)? = nil) async throws -> Administration {
        let directory = try await Directory.sample(store: store ?? self.store, maxStale: isShared ? .seconds(900) : nil)
        self.others.change { $0.append(directory) }
        return Administration(
            directory: directory,
            audit: self.audit,
            masterKey: try .sample(),
            pepper: .sample,
            clock: self.clock
        )
    }

    /// Runs a test with the audit log, the directories and the tenant `acme`, a minute after its creation.
    func run(_ body: @Sendable (TenantID) async throws -> Void) async throws {
        try await ([self.directory] + self.others.current)
            .whileRunning {
                try await self.audit.whileRunning {
                    try await self.auditStore.wait { $0.batches.count == 1 }
                    let acme = try TenantID.sample()
                    let draft = Tenant.Draft(displayName: "Acme", upstream: .legacy)
                    _ = try await self.administration.put(draft, id: acme, origin: .sample)
                    self.clock.advance(by: .seconds(60))
                    try await body(acme)
                }
            }
    }

    /// The records of operators' actions after the creation of `acme`.
    var records: [AuditRecord] {
        self.auditStore.current.records.map(\.record).filter { $0.principal == "admin" }.dropFirst(2).map(\.self)
    }

    func profile(_ name: String = "acme") throws -> TenantProfile? {
        self.directory.snapshot.tenants[try .sample(name)]
    }

    /// True if the current directory accepts the key.
    func accepts(_ key: APIKey) -> Bool {
        let authenticator = Authenticator(directory: self.directory, pepper: .sample)
        switch authenticator.authenticate(key: key.secret.revealBytes()[...], clientNames: [], now: self.clock.now()) {
        case .authenticated: return true
        case .refused: return false
        }
    }
}
