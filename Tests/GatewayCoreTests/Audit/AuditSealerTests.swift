import GatewayCore
import GatewayTestKit
import Testing

@Suite("AuditSealer")
struct AuditSealerTests {
    private let sealer = AuditSealer(auditKey: Secret(bytes: Array(UInt8(0)..<32)))

    private var chain: AuditChain {
        var chain = AuditChain(writer: 7)
        _ = chain.append(RecordChange.original)
        var second = RecordChange.original
        second.object = "thing"
        second.outcome = .accepted
        second.tenant = nil
        _ = chain.append(second)
        return chain
    }

    @Test("A seal is the one that another program computes")
    func knownAnswer() {
        let head = self.sealer.head(of: self.chain, state: .closed)
        #expect(Hex.text(head.seal) == "581eaa508bd6fdc65653bdc7e40ed7e3ff0f9e5d90d39dd70ff764ac30fd09ea")
        #expect(self.sealer.isGenuine(head))
    }

    @Test("Another key's seal is not genuine")
    func otherKey() {
        let head = AuditSealer(auditKey: .sample("other")).head(of: self.chain, state: .open)
        #expect(!self.sealer.isGenuine(head))
    }

    @Test("No part of a head can be changed under its seal")
    func changes() {
        let head = self.sealer.head(of: self.chain, state: .open)
        var changed = Array(repeating: head, count: 8)
        changed[0].writer = 8
        changed[1].sequence = 1
        changed[2].hash[31] ^= 1
        changed[3].hash.removeLast()
        changed[4].state = .closed
        changed[5].state = .recovered
        changed[6].seal[0] ^= 1
        changed[7].seal = []
        for head in changed { #expect(!self.sealer.isGenuine(head), "\(head)") }
    }
}
