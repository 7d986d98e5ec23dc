import GatewayTestKit
import Testing

@testable import GatewayAudit

@Suite("AuditChain and AuditSealer")
struct AuditChainTests {
    private let sealer = AuditSealer(auditKey: Secret(bytes: Array(UInt8(0)..<32)))

    /// A chain of two records: the first has no object, the second no tenant.
    private static func sample() -> (AuditChain, [ChainedAuditRecord]) {
        var chain = AuditChain(writer: 7)
        var changed = RecordChange.original
        (changed.object, changed.outcome, changed.tenant) = ("thing", .accepted, nil)
        let records = [chain.append(RecordChange.original), chain.append(changed)]
        return (chain, records)
    }

    @Test("Hashes and the seal equal those that another program computed from the same records")
    func knownAnswers() {
        let (chain, records) = Self.sample()
        let hashes = [
            "fdcbcc075eabe0ffc94d4f2a741532f2cbb1cb7109191071b39ead6d61a76b59",
            "6cb43092976412849d81eec59a03ef5a32c95d6fc6978f0aa547ac02ef808a49",
        ]
        #expect(records.map { Hex.text($0.hash) } == hashes)
        #expect(records.map(\.sequence) == [1, 2] && chain.sequence == 2)
        #expect(chain.hash == records[1].hash)
        #expect((records[0].writer, records[0].record) == (7, RecordChange.original))
        let head = self.sealer.head(of: chain, state: .closed)
        #expect(Hex.text(head.seal) == "581eaa508bd6fdc65653bdc7e40ed7e3ff0f9e5d90d39dd70ff764ac30fd09ea")
        #expect(self.sealer.isGenuine(head))
    }

    @Test("A record's hash depends on every field, the writer, the sequence and the previous hash")
    func everythingCounts() {
        var records = [RecordChange.original]
        for change in RecordChange.all {
            var record = RecordChange.original
            change.apply(&record)
            records.append(record)
        }
        var hashes: [[UInt8]] = []
        for record in records {
            var chain = AuditChain(writer: 1)
            hashes.append(chain.append(record).hash)
        }
        var past = AuditChain(writer: 1)
        _ = past.append(.sample())
        var others = [
            AuditChain(writer: 2), AuditChain(writer: 1, sequence: 0, hash: Array(repeating: 0, count: 32)),
            AuditChain(writer: 1, sequence: 1, hash: AuditChain(writer: 1).hash), past,
        ]
        for index in others.indices { hashes.append(others[index].append(RecordChange.original).hash) }
        #expect(Set(hashes).count == hashes.count)
    }

    @Test("A seal is not genuine if any part of its head was changed or another key made it")
    func seals() {
        let (chain, _) = Self.sample()
        let head = self.sealer.head(of: chain, state: .open)
        var changed = Array(repeating: head, count: 8)
        changed[0].writer = 8
        changed[1].sequence = 1
        changed[2].hash[31] ^= 1
        changed[3].hash.removeLast()
        changed[4].state = .closed
        changed[5].state = .recovered
        changed[6].seal[0] ^= 1
        changed[7].seal = []
        changed.append(AuditSealer(auditKey: .sample("other")).head(of: chain, state: .open))
        for head in changed { #expect(!self.sealer.isGenuine(head), "\(head)") }
    }
}
