import GatewayCore
import GatewayStorage

/// Records and chains for tests, and functions that write them.
struct AuditFixtures {
    static let start: Int64 = 1_790_000_000_000_000

    let sealer = AuditSealer(auditKey: Secret("an audit key of enough bytes for tests"))

    /// A record that fills every field, different for every number.
    static func record(_ number: Int, tenant: String? = "acme") -> AuditRecord {
        let time = Timestamp(microseconds: Self.start + Int64(number) * 1_000_000)
        var record = AuditRecord(
            time: time,
            tenant: tenant,
            principal: "key:k\(number)",
            action: number.isMultiple(of: 3) ? "message.validate" : "message.send",
            outcome: number.isMultiple(of: 2) ? .accepted : .rejected,
            requestID: "request-\(number)"
        )
        record.method = "POST"
        record.targetKind = "token"
        record.targets = Self.targets([number, number + 1_000])
        record.results = [.init(fcmMessageID: "0:\(number)%abc"), .init(code: "unregistered")]
        record.object = number.isMultiple(of: 5) ? nil : "object-\(number)"
        record.recipients = 2
        record.accepted = number % 3
        record.bytes = 300 + number
        record.code = "unregistered"
        record.upstreamCode = "NotRegistered"
        record.fcmMessageID = "0:\(number)%abc"
        record.messageID = UUIDv7.generate(at: time)
        record.traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
        return record
    }

    /// The pseudonyms of numbered recipients, one after the other.
    static func targets(_ numbers: [Int]) -> [UInt8] {
        var bytes: [UInt8] = []
        for number in numbers { self.pseudonym(number).append(to: &bytes) }
        return bytes
    }

    static func pseudonym(_ number: Int) -> Pseudonym {
        Pseudonym(bytes: (0..<16).map { UInt8(truncatingIfNeeded: number &* 31 &+ $0 &* 7) })
    }

    /// Verifies a store that is opened read-only.
    func verdict(on path: String, isLive: Bool = false) async throws -> AuditVerifier.Verdict {
        let database = try SQLiteReadOnlyDatabase(path: path)
        let verifier = AuditVerifier(store: SQLAuditStore(database: database), sealer: self.sealer)
        let verdict = try await verifier.verify(isLive: isLive)
        try database.close()
        return verdict
    }

    /// Appends records to a chain, and writes them and its head in one commit.
    func write(
        _ records: [AuditRecord],
        to chain: inout AuditChain,
        state: AuditHead.State = .open,
        in store: any AuditStore
    ) async throws {
        let chained = records.map { chain.append($0) }
        try await store.append(chained, head: self.sealer.head(of: chain, state: state))
    }

    /// Fills a store with closed chains of writers from 1 on, with consecutively numbered records.
    func fill(_ store: any AuditStore, writers: Int, recordsEach: Int, lastState: AuditHead.State = .closed)
        async throws
    {
        for writer in 1...writers {
            var chain = AuditChain(writer: writer)
            let numbers = (writer - 1) * recordsEach..<writer * recordsEach
            let state = writer == writers ? lastState : .closed
            try await self.write(numbers.map { Self.record($0) }, to: &chain, state: state, in: store)
        }
    }
}
