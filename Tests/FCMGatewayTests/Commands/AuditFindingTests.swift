import ArgumentParser
import GatewayCore
import StrictJSON
import Testing

@testable import FCMGateway
@testable import GatewayService

@Suite("What audit verify says")
struct AuditFindingTests {
    /// A finding, and all that is made of it.
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

    private static let place = AuditPosition(writer: 2, sequence: 7)

    // A row is a finding and what is made of it, where the formatter would have a line for each bracket.
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

    @Test("Of many chains without their spools the latest are told one by one, and programs get all")
    func manyAbandoned() throws {
        let places = (1...25).map { AuditPosition(writer: 2, sequence: $0) }
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

    private static func export(
        _ verdict: AuditVerifier.Verdict,
        tenant: String? = nil,
        removed: Int = 0,
        checkpoint: Int? = nil
    ) -> AuditFinding {
        let summary = AuditExportSummary(records: 5, hidden: 3, removed: removed)
        return AuditFinding(
            AuditExportVerifier.Report(verdict: verdict, tenant: tenant, summary: summary, checkpoint: checkpoint)
        )
    }

    // swift-format-ignore
    private static let exports = [
        Row(export(.intact(records: 5)),
            "The export is intact: 5 records and the hashes of 3 others.",
            #"{"hidden":3,"records":5,"removed":0,"verdict":"intact"}"#, 0),
        Row(export(.intact(records: 5), tenant: "shop", removed: 8, checkpoint: 4),
            "The export is intact: 5 records of tenant shop and the hashes of 3 others, "
                + "after 8 that were removed by age, with checkpoint 4.",
            #"{"checkpoint":4,"hidden":3,"records":5,"removed":8,"verdict":"intact"}"#, 0),
        Row(export(.tampered(place, reason: "a writer is missing"), tenant: "shop"),
            "The export was changed. First bad record: sequence 7 of writer 2: a writer is missing.",
            #"{"reason":"a writer is missing","sequence":7,"verdict":"tampered","writer":2}"#, 1),
        Row(export(.checkpointTampered(number: 4, reason: "its signature is not genuine"), checkpoint: 4),
            "The export was changed. First bad record: checkpoint 4: its signature is not genuine.",
            #"{"checkpoint":4,"reason":"its signature is not genuine","verdict":"tampered"}"#, 1),
        Row(export(.unclean(writer: 2, records: 5), checkpoint: 4),
            "The export holds (5 records and the hashes of 3 others, with checkpoint 4), "
                + "but writer 2 had ended uncleanly when it was made.",
            #"{"checkpoint":4,"hidden":3,"records":5,"removed":0,"verdict":"unclean","writer":2}"#, 2),
    ]

    @Test("Text, JSON and exit code of every finding", arguments: store + sink + exports)
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
