import Testing

@testable import FCMEmulator

@Suite("FaultScript")
struct FaultScriptTests {
    @Test("A fault is played as often as it says, the earlier one first")
    func times() {
        var script = FaultScript()
        script.add(Fault(times: 2, action: .reset))
        script.add(Fault(action: .hang))
        let actions = (1...4).map { _ in script.take(path: "/x", tokens: []) }
        #expect(actions == [.reset, .reset, .hang, nil])
        #expect(script.isEmpty)
    }

    @Test("Only requests of the path and with the token match")
    func match() {
        var script = FaultScript()
        #expect(!script.looksAtTokens)
        script.add(Fault(path: "/fcm/send", token: "b", action: .garbage))
        #expect(script.looksAtTokens)
        #expect(script.take(path: "/other", tokens: ["b"]) == nil)
        #expect(script.take(path: "/fcm/send", tokens: ["a"]) == nil)
        #expect(script.take(path: "/fcm/send", tokens: ["a", "b"]) == .garbage)
    }
}
