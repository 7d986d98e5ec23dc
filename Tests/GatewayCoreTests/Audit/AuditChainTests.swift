import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("AuditChain")
struct AuditChainTests {
    @Test("The hashes are those that another program computes from the same records")
    func knownAnswers() {
        var chain = AuditChain(writer: 7)
        let first = chain.append(RecordChange.original)
        var changed = RecordChange.original
        changed.object = "thing"
        changed.outcome = .accepted
        changed.tenant = nil
        let second = chain.append(changed)
        #expect(Hex.text(first.hash) == "fdcbcc075eabe0ffc94d4f2a741532f2cbb1cb7109191071b39ead6d61a76b59")
        #expect(Hex.text(second.hash) == "6cb43092976412849d81eec59a03ef5a32c95d6fc6978f0aa547ac02ef808a49")
        #expect([first.sequence, second.sequence, chain.sequence] == [1, 2, 2])
        #expect(chain.hash == second.hash)
        #expect((first.writer, first.record) == (7, RecordChange.original))
    }

    @Test("A change of any field changes the hash", arguments: RecordChange.all)
    func everyFieldCounts(change: RecordChange) {
        var (chain, other) = (AuditChain(writer: 1), AuditChain(writer: 1))
        var changed = RecordChange.original
        change.apply(&changed)
        #expect(changed != RecordChange.original)
        #expect(chain.append(RecordChange.original).hash != other.append(changed).hash)
    }

    @Test("Every change leads to another encoding than every other")
    func encodingsDiffer() {
        func encoding(_ record: AuditRecord) -> [UInt8] {
            var bytes: [UInt8] = []
            AuditCodec.encodeHeader(of: AuditEntry(record), writer: 1, sequence: 1, to: &bytes)
            AuditCodec.encode(record, to: &bytes)
            return bytes
        }
        var encodings = [encoding(RecordChange.original)]
        for change in RecordChange.all {
            var record = RecordChange.original
            change.apply(&record)
            encodings.append(encoding(record))
        }
        #expect(Set(encodings).count == RecordChange.all.count + 1)
    }

    @Test("The writer, the place and everything before count too")
    func positionCounts() {
        let record = AuditRecord.sample()
        var chain = AuditChain(writer: 1)
        let first = chain.append(record).hash
        let second = chain.append(record).hash
        var otherWriter = AuditChain(writer: 2)
        var otherStart = AuditChain(writer: 1, sequence: 0, hash: Array(repeating: 0, count: 32))
        var otherPlace = AuditChain(writer: 1, sequence: 1, hash: AuditChain(writer: 1).hash)
        var otherPast = AuditChain(writer: 1)
        _ = otherPast.append(.sample("other"))
        let hashes = [
            first, second, otherWriter.append(record).hash, otherStart.append(record).hash,
            otherPlace.append(record).hash, otherPast.append(record).hash,
        ]
        #expect(Set(hashes).count == hashes.count)
    }

    @Test("A chain goes on from its head as if it had never stopped")
    func continued() {
        var chain = AuditChain(writer: 3)
        _ = chain.append(.sample("first"))
        var continued = AuditSealer(auditKey: .sample("audit")).head(of: chain, state: .open).chain
        #expect(continued.append(.sample("second")) == chain.append(.sample("second")))
    }
}
