import Foundation
import GatewayCore

/// A store whose directory is made beforehand: one change, over and over.
private struct FixedDirectory: DirectoryStore {
    let contents: DirectoryContents
    let changed: DirectoryContents

    func load() async throws(GatewayError) -> DirectoryContents { self.contents }

    func apply(
        _ change: DirectoryChange,
        plannedAt version: DirectoryVersion
    ) async throws(GatewayError) -> DirectoryContents? { self.changed }

    func changes(since version: Int64, in origin: String) async throws(GatewayError) -> DirectoryNews { .none }
}

extension Micro {
    /// A change of one tenant among many, each with a sealed credential and a key, without what the disk takes.
    static func changing() async throws -> [String] {
        var rows: [String] = []
        for count in [10, 1_000, 10_000] {
            guard let masterKey = MasterKey(Secret(randomBytes: 32)) else { return [] }
            var (all, one) = (DirectoryContents(), DirectoryContents())
            for number in 0..<count {
                guard let id = TenantID("tenant-\(number)") else { return [] }
                try Self.add(id, to: &all, masterKey)
                if number == 0 { one = all }
            }
            let directory = Directory(
                store: FixedDirectory(contents: all, changed: one),
                masterKey: masterKey,
                auditKey: Secret(randomBytes: 32),
                defaultLimits: LimitPolicies(),
            )
            try await directory.reload()
            let change = DirectoryChange.addKey(one.keys[0])
            rows.append(
                try await Measurement.measure("show a change of one tenant among \(count)", operations: 100) {
                    for _ in 0..<100 {
                        _ = try await directory.apply(change, plannedAt: directory.basis(of: change.tenant).1)
                    }
                }
                .row
            )
        }
        return rows
    }

    private static func add(_ id: TenantID, to contents: inout DirectoryContents, _ masterKey: MasterKey) throws {
        let now = Timestamp(microseconds: 1_700_000_000_000_000)
        let salt = Secret(randomBytes: 32).revealBytes()
        contents.tenants.append(
            Tenant(id: id, displayName: id.text, upstream: .legacy, createdAt: now, updatedAt: now)
        )
        contents.salts[id] = salt
        var credential = StoredCredential(
            tenant: id,
            kind: .legacy,
            version: 1,
            envelope: Envelope(wrappedKey: Data(), sealed: Data()),
            endpoint: nil,
            fingerprint: "",
            createdAt: now
        )
        credential.envelope = try Envelope(
            sealing: Secret(randomBytes: 32),
            for: credential.context(salt: salt),
            under: masterKey
        )
        contents.credentials.append(credential)
        let key = APIKey.generate()
        contents.keys.append(
            APIKeyRecord(
                id: key.id,
                tenant: id,
                name: "bench",
                digest: Secret(randomBytes: 32).revealBytes(),
                scopes: [.sendMessages],
                topicPrefixes: [],
                createdAt: now
            )
        )
    }
}
