import ArgumentParser
import GatewayCore
import StrictJSON
import Testing

@testable import FCMGateway
@testable import GatewayService

@Suite("Findings of audit verify")
struct AuditFindingTests {
    /// A finding, with its text, JSON and exit code.
    struct Row: Sendable, CustomTestStringConvertible {
        let finding: AuditFinding
        let text: String
        let json: String
        let exitCode: Int32

        var testDescription: String { self.text }

        init(_ finding: AuditFinding, _ text: String, _ json: String, _ exitCode: Int32) {
            (self.finding, self.text, self.json, self.exitCode) = (finding, text, json, exitCode)
        }
    }

    private static let place = AuditChain.Position(writer: 2, sequence: 7)

    // One finding per entry; the formatter would put each bracket on its own line.
    // swift-format-ignore
    private static let store = [
        Row(AuditFinding(.intact(records: 12)),
            "The audit trail is intact: 12 records.",
            #"{"records":12,"verdict":"intact"}"#, 0),
        Row(AuditFinding(.tampered(place, reason: "the record was changed")),
            "The audit trail was changed. First bad record: sequence 7 of writer 2: the record was changed.",
            #"{"reason":"the record was changed","sequence":7,"verdict":"tampered","writer":2}"#, 1),
        Row(AuditFinding(.checkpointTampered(number: 3, reason: "it is missing")),
            "The audit trail was changed. First bad record: checkpoint 3: it is missing.",
            #"{"checkpoint":3,"reason":"it is missing","verdict":"tampered"}"#, 1),
        Row(AuditFinding(.unclean(writer: 4, records: 9)),
            "The audit trail holds (9 records), but writer 4 ended uncleanly; "
                + "the gateway's next start closes its chain, or its leader does.",
            #"{"records":9,"verdict":"unclean","writer":4}"#, 2),
        Row(AuditFinding(AuditVerifier.Report(.intact(records: 12), abandoned: [place])),
            "The audit trail is intact: 12 records.\n" + abandoned(7),
            #"{"abandoned_chains":[{"sequence":7,"writer":2}],"records":12,"verdict":"intact"}"#, 0),
        Row(AuditFinding(AuditVerifier.Report(.unclean(writer: 4, records: 9), abandoned: [])),
            "The audit trail holds (9 records), but writer 4 ended uncleanly; "
                + "the gateway's next start closes its chain, or its leader does.",
            #"{"records":9,"verdict":"unclean","writer":4}"#, 2),
    ]

    private static func abandoned(_ sequence: Int) -> String {
        "Records of accepted sends may be missing after sequence \(sequence) of writer 2: the leader closed the chain of a "
            + "dead replica, which has not come back with its spool."
    }

    @Test("The text lists the latest 20 abandoned chains and counts earlier ones; JSON lists all")
    func manyAbandoned() throws {
        let places = (1...25).map { AuditChain.Position(writer: 2, sequence: $0) }
        let finding = AuditFinding(AuditVerifier.Report(.intact(records: 12), abandoned: places))
        let lines = ["The audit trail is intact: 12 records.", "5 earlier chains end like these:"]
        #expect(finding.text.plain == (lines + (6...25).map(Self.abandoned)).joined(separator: "\n"))
        let printed = try JSONValue(parsing: finding.output(json: true).answer)
        #expect(printed["abandoned_chains"]?.canonicalText.split(separator: "{").count == 26)
    }

    // swift-format-ignore
    private static let sink = [
        Row(AuditFinding(sinkRecords: 56, latest: 17),
            "The audit's second sink is intact: 56 records, up to checkpoint 17.",
            #"{"checkpoint":17,"records":56,"verdict":"intact"}"#, 0),
        Row(AuditFinding(
                AuditSinkVerifier.Failure(file: "a.jsonl", line: 3, place: place, reason: "the record was changed")),
            "The audit's second sink was changed. First bad record: "
                + "sequence 7 of writer 2, line 3 of a.jsonl: the record was changed.",
            #"{"file":"a.jsonl","line":3,"reason":"the record was changed","sequence":7,"verdict":"tampered","#
                + #""writer":2}"#, 1),
        Row(AuditFinding(AuditSinkVerifier.Failure(file: "a.jsonl", line: 1, reason: "the line was changed")),
            "The audit's second sink was changed. First bad record: line 1 of a.jsonl: the line was changed.",
            #"{"file":"a.jsonl","line":1,"reason":"the line was changed","verdict":"tampered"}"#, 1),
    ]

    @Test("Every finding has its text, JSON and exit code", arguments: store + sink)
    func row(row: Row) throws {
        #expect(row.finding.text.plain == row.text)
        #expect(row.finding.exitCode.rawValue == row.exitCode)
        let plain = row.finding.output(json: false)
        #expect(plain.answer == row.text && plain.remark.isEmpty && plain.colouredAnswer != nil)
        let printed = row.finding.output(json: true)
        #expect(try JSONValue(parsing: printed.answer).canonicalText == row.json)
        #expect(printed.colouredAnswer == nil && printed.remark.isEmpty)
    }
}
