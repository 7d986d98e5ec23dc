import EventLoopHTTP
import Foundation
import GatewayCore
import GatewayTestKit
import NIOCore
import NIOPosix
import Synchronization

/// A store whose directory is made beforehand: the rows of some tenants change over and over, by turns to these and
/// those.
private final class FixedDirectory: DirectoryStore {
    private let contents: Directory.Contents
    private let changed: [Directory.Contents]
    private let version = Atomic<Int64>(0)

    init(_ contents: Directory.Contents, changed: [Directory.Contents]) {
        self.contents = contents
        self.changed = changed
    }

    func load() async throws(GatewayError) -> Directory.Contents { self.contents }

    func apply(
        _ change: Directory.Change,
        plannedAt version: Directory.Version
    ) async throws(GatewayError) -> Directory.Contents? { self.next() }

    func changes(since version: Directory.Version) async throws(GatewayError) -> Directory.News {
        let rows = self.next()
        return .tenants(Set(rows.tenants.map(\.id)), rows)
    }

    private func next() -> Directory.Contents {
        let number = self.version.add(1, ordering: .relaxed).newValue
        var rows = self.changed[Int(number) % self.changed.count]
        rows.version.number = number
        return rows
    }
}

extension Micro {
    /// Changes of one tenant among many, and of all of them, each with a sealed credential and a key; without the
    /// store.
    static func changing() async throws -> [String] {
        var rows: [String] = []
        guard let masterKey = MasterKey(Secret(randomBytes: 32)) else { return [] }
        for count in [10, 1_000, 10_000] {
            let all = try Self.contents(count, masterKey)
            let one = all.of([all.tenants[0].id])
            let directory = try await Self.directory(FixedDirectory(all, changed: [one]), masterKey)
            rows += try await directory.whileRunning {
                let change = Directory.Change.addKey(one.keys[0])
                return [
                    try await Measurement.measure("show a change of one tenant among \(count)", operations: 100) {
                        for _ in 0..<100 {
                            let version = directory.snapshot.version(of: change.tenant)
                            _ = try await directory.apply(change, plannedAt: version)
                        }
                    }
                    .row
                ]
            }
        }
        let count = 10_000
        let variants = [try Self.contents(count, masterKey), try Self.contents(count, masterKey)]
        let directory = try await Self.directory(FixedDirectory(variants[0], changed: variants), masterKey)
        rows += try await directory.whileRunning {
            let name = "open and show a change of each of \(count) tenants"
            let measurement = try await Measurement.measure(name, operations: count) { try await directory.catchUp() }
            return [measurement.row, try await Self.stall { try await directory.catchUp() }]
        }
        return rows
    }

    /// The longest time that an event loop does nothing else while a task on it has all tenants shown.
    private static func stall(_ body: @Sendable () async throws -> Void) async throws -> String {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let longest = Mutex(TimeAmount.zero)
        let last = Mutex(NIODeadline.now())
        let interval = TimeAmount.milliseconds(1)
        let watch = group.next()
            .scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
                let now = NIODeadline.now()
                let pause = last.withLock { last in
                    defer { last = now }
                    return now - last - interval
                }
                longest.withLock { $0 = max($0, pause) }
            }
        try await withTaskExecutorPreference(EventLoopTaskExecutor(eventLoop: group.next())) {
            for _ in 0..<5 { try await body() }
        }
        watch.cancel()
        try await group.shutdownGracefully()
        let microseconds = longest.withLock { $0.nanoseconds / 1_000 }
        return "| longest stall of an event loop whose request awaits that (time on the wall) | \(microseconds) µs |"
    }

    private static func directory(_ store: FixedDirectory, _ masterKey: MasterKey) async throws -> Directory {
        try await Directory(
            store: store,
            masterKey: masterKey,
            auditKey: Secret(randomBytes: 32),
            defaultLimits: LimitPolicies()
        )
    }

    private static func contents(_ count: Int, _ masterKey: MasterKey) throws -> Directory.Contents {
        var contents = Directory.Contents()
        for number in 0..<count {
            guard let id = TenantID("tenant-\(number)") else { continue }
            try Self.add(id, to: &contents, masterKey)
        }
        return contents
    }

    private static func add(_ id: TenantID, to contents: inout Directory.Contents, _ masterKey: MasterKey) throws {
        let now = Timestamp(microseconds: 1_700_000_000_000_000)
        // Of one life of the tenant, in whichever contents.
        let salt = Array("salt of \(id.text)".utf8)
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
            APIKey.Record(
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
