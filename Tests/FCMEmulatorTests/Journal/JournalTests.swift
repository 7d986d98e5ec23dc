import Testing

@testable import FCMEmulator

@Suite("Journal")
struct JournalTests {
    private static func request(_ body: String) -> ReceivedRequest {
        ReceivedRequest("/fcm/send", body: Array(body.utf8))
    }

    private static let decision = JournalDecision(answer: .notFound, reason: "r")

    @Test("Ids keep increasing after entries are dropped or removed")
    func ids() {
        var journal = Journal(maxEntries: 2, maxBytes: 1_000)
        for body in ["a", "b", "c"] {
            _ = journal.record(Self.request(body), fault: nil, decision: Self.decision)
        }
        #expect(journal.newest(.max).map(\.id) == [3, 2])
        journal.removeAll()
        #expect(journal.newest(.max).isEmpty)
        #expect(journal.record(Self.request("d"), fault: nil, decision: Self.decision).id == 4)
    }

    @Test("The bodies have a limit in bytes, but the newest entry always stays")
    func bytes() {
        var journal = Journal(maxEntries: 100, maxBytes: 10)
        for body in ["12345", "12345", "123456"] {
            _ = journal.record(Self.request(body), fault: nil, decision: Self.decision)
        }
        #expect(journal.newest(.max).map(\.id) == [3])
        _ = journal.record(Self.request(String(repeating: "x", count: 50)), fault: nil, decision: Self.decision)
        #expect(journal.newest(.max).map(\.id) == [4])
    }

    @Test("A held request gets its decision later, unless its entry was dropped")
    func complete() {
        var journal = Journal(maxEntries: 2, maxBytes: 1_000)
        let held = journal.record(Self.request("a"), fault: .hang, decision: nil)
        _ = journal.record(Self.request("b"), fault: nil, decision: Self.decision)
        #expect(held.decision == nil)
        #expect(held.fault == "hang")
        #expect(journal.complete(held.id, decision: Self.decision)?.decision == Self.decision)
        #expect(journal.newest(.max).map(\.decision) == [Self.decision, Self.decision])
        _ = journal.record(Self.request("c"), fault: nil, decision: nil)
        #expect(journal.complete(held.id, decision: Self.decision) == nil)
        #expect(journal.newest(1).first?.decision == nil)
    }
}
