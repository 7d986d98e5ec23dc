import Testing

@testable import GatewayCore

struct AuditWriterStateTests {
    private let start = AuditChain(writer: 1)

    private func end(_ sequence: Int) -> AuditChain {
        AuditChain(writer: 1, sequence: sequence, hash: [UInt8(sequence)])
    }

    @Test("A store that takes everything is all there is")
    func direct() {
        var state = AuditWriterState(chain: self.start)
        state.storeTook(self.end(3))
        #expect(state.isDirect)
        #expect((state.tail, state.stored, state.lag) == (self.end(3), self.end(3), 0))
        let isBack = state.returnIfCaughtUp()
        #expect(!isBack)
    }

    @Test("The way back leads over a store that took all that the spool has")
    func detour() {
        var state = AuditWriterState(chain: self.end(1))
        state.spoolTook(self.end(5))
        #expect(!state.isDirect && !state.isStoreWell && state.lag == 4)
        state.storeRefused()
        let isBack = state.returnIfCaughtUp()
        #expect(!isBack)
        state.storeTook(self.end(4))
        #expect(state.isStoreWell && state.lag == 1)
        let isBack3 = state.returnIfCaughtUp()
        #expect(!isBack3)
        state.spoolTook(self.end(6))
        #expect(state.isStoreWell && state.lag == 2)
        state.storeTook(self.end(6))
        let isBack4 = state.returnIfCaughtUp()
        #expect(isBack4)
        #expect(state.isDirect && state.tail == self.end(6))
    }

    @Test("Even with nothing in the spool, a store that refused has to prove itself first")
    func proof() {
        var state = AuditWriterState(chain: self.end(1))
        state.spoolTook(self.end(1))
        let isBack = state.returnIfCaughtUp()
        #expect(state.lag == 0 && !isBack)
        state.storeTook(self.end(1))
        let isBack6 = state.returnIfCaughtUp()
        #expect(isBack6)
    }

    @Test("A spool that is given up takes the chain back to where the store is")
    func abandoned() {
        var state = AuditWriterState(chain: self.end(1))
        state.spoolTook(self.end(9))
        state.storeTook(self.end(3))
        let lost = state.abandonSpool()
        #expect(lost == 6)
        #expect(state.isDirect && state.tail == self.end(3))
    }
}
