import GatewayTestKit
import NIOCore
import Testing

@testable import GatewayAudit

@Suite("Records as lines of JSON")
struct AuditLineTests {
    @Test("A record's line reads back as the same record, and other spacing is refused", arguments: RecordChange.all)
    func line(change: RecordChange) throws {
        var record = RecordChange.original
        change.apply(&record)
        var chain = AuditChain(writer: 3)
        let chained = chain.append(record)
        let line = AuditLine.record(chained)
        #expect(AuditLine(line.text) == line)
        let text = String(buffer: line.text)
        #expect(AuditLine(ByteBuffer(string: text.replacing(",", with: ", ", maxReplacements: 1))) == nil)
    }

    @Test("Intents are matched with their outcomes, even with other records between them")
    func intents() throws {
        var chain = AuditChain(writer: 1)
        func record(_ outcome: AuditRecord.Outcome, _ message: String?, _ request: String) -> ChainedAuditRecord {
            var record = AuditRecord.sample("message.send")
            (record.outcome, record.messageID, record.requestID) = (outcome, message, request)
            return chain.append(record)
        }
        var intents = AuditIntents()
        let records = [
            record(.intent, "1", "same"), record(.intent, "2", "same"), record(.accepted, "1", "same"),
            record(.intent, nil, "twice"), record(.intent, nil, "twice"), record(.done, nil, "twice"),
            record(.accepted, "none", "same"),
        ]
        for record in records { intents.take(record) }
        #expect(intents.withoutOutcome.map(\.sequence) == [2, 5])
    }
}
