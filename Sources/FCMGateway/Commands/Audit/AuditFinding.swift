import ArgumentParser
import GatewayCore
import GatewayService
import StrictJSON

/// The result of `audit verify` in words, as JSON, and as an exit code for scripts.
struct AuditFinding {
    enum Verdict: String {
        case intact
        case tampered
        /// The trail was not changed, but a writer ended uncleanly.
        case unclean
    }

    enum Member: Sendable {
        case integer(Int)
        case string(String)
        case places([AuditChain.Position])
    }

    /// The maximum number of abandoned chains that are listed one by one: the latest.
    private static let maxAbandoned = 20

    let verdict: Verdict
    let text: StyledText
    /// Further facts, under names for programs.
    let members: [String: Member]

    /// The result for a store.
    init(_ verdict: AuditVerifier.Verdict) {
        switch verdict {
        case .intact(let records):
            self.init(
                .intact,
                StyledText("The audit trail is ") + StyledText("intact", .good) + StyledText(": \(records) records."),
                ["records": .integer(records)]
            )
        case .tampered(let position, let reason):
            self.init(tampered: "The audit trail", at: position, reason: reason)
        case .checkpointTampered(let number, let reason):
            self.init(tampered: "The audit trail", checkpoint: number, reason: reason)
        case .unclean(let writer, let records):
            self.init(
                .unclean,
                StyledText("The audit trail holds (\(records) records), but writer \(writer) ")
                    + StyledText("ended uncleanly", .caution)
                    + StyledText("; the gateway's next start closes its chain, or its leader does."),
                ["records": .integer(records), "writer": .integer(writer)]
            )
        }
    }

    /// The result for a store, with the chains whose end may be missing.
    init(_ report: AuditVerifier.Report) {
        let finding = AuditFinding(report.verdict)
        guard !report.abandoned.isEmpty else {
            self = finding
            return
        }
        var lines = [finding.text]
        let told = report.abandoned.suffix(Self.maxAbandoned)
        if told.count < report.abandoned.count {
            lines.append(StyledText("\(report.abandoned.count - told.count) earlier chains end like these:"))
        }
        lines += told.map { place in
            StyledText("Records of accepted sends may be ") + StyledText("missing", .caution)
                + StyledText(
                    " after sequence \(place.sequence) of writer \(place.writer): the leader closed the chain of a dead "
                        + "replica, which has not come back with its spool."
                )
        }
        let members = finding.members.merging(["abandoned_chains": .places(report.abandoned)]) { $1 }
        self.init(finding.verdict, StyledText(lines: lines), members)
    }

    /// The result for a second sink alone, up to its latest checkpoint.
    init(sinkRecords records: Int, latest: Int) {
        self.init(
            .intact,
            StyledText("The audit's second sink is ") + StyledText("intact", .good)
                + StyledText(": \(records) records, up to checkpoint \(latest)."),
            ["records": .integer(records), "checkpoint": .integer(latest)]
        )
    }

    init(_ failure: AuditSinkVerifier.Failure) {
        let record = failure.place.map { "sequence \($0.sequence) of writer \($0.writer), " } ?? ""
        var members: [String: Member] = [
            "file": .string(failure.file), "line": .integer(failure.line), "reason": .string(failure.reason),
        ]
        if let place = failure.place {
            members["writer"] = .integer(place.writer)
            members["sequence"] = .integer(place.sequence)
        }
        self.init(
            tampered: "The audit's second sink",
            "\(record)line \(failure.line) of \(failure.file): \(failure.reason)",
            members
        )
    }

    init(spool path: String, intact records: Int) {
        self.init(
            tampered: "The audit's spool",
            "number \(records + 1) of \(path)",
            ["file": .string(path), "records": .integer(records)]
        )
    }

    private init(_ verdict: Verdict, _ text: StyledText, _ members: [String: Member]) {
        (self.verdict, self.text, self.members) = (verdict, text, members)
    }

    private init(tampered subject: String, _ place: String, _ members: [String: Member]) {
        self.init(
            .tampered,
            StyledText("\(subject) ") + StyledText("was changed", .bad) + StyledText(". First bad record: \(place)."),
            members
        )
    }

    private init(tampered subject: String, at place: AuditChain.Position, reason: String) {
        let members: [String: Member] = [
            "writer": .integer(place.writer), "sequence": .integer(place.sequence), "reason": .string(reason),
        ]
        self.init(tampered: subject, "sequence \(place.sequence) of writer \(place.writer): \(reason)", members)
    }

    private init(tampered subject: String, checkpoint number: Int, reason: String) {
        let members: [String: Member] = ["checkpoint": .integer(number), "reason": .string(reason)]
        self.init(tampered: subject, "checkpoint \(number): \(reason)", members)
    }

    /// The output; JSON has `verdict` and the members.
    func output(json: Bool) -> CommandOutput {
        guard json else { return CommandOutput(self.text) }
        return .json { writer in
            writer.member("verdict", self.verdict.rawValue)
            for (name, member) in self.members {
                writer.key(name)
                switch member {
                case .integer(let number): writer.integer(number)
                case .string(let text): writer.string(text)
                case .places(let places):
                    writer.beginArray()
                    for place in places {
                        writer.beginObject()
                        writer.member("writer", place.writer)
                        writer.member("sequence", place.sequence)
                        writer.endObject()
                    }
                    writer.endArray()
                }
            }
        }
    }

    var exitCode: ExitCode {
        switch self.verdict {
        case .intact: .success
        case .tampered: .failure
        case .unclean: ExitCode(2)
        }
    }

    /// Prints the result. Throws the exit code unless it is 0.
    ///
    /// Throws 66 if the result can't be printed, because 1 would mean that the trail was changed.
    func report(json: Bool) throws {
        do {
            try self.output(json: json).write()
        } catch {
            guard self.verdict != .tampered else { throw error }
            FailureReport.write(error)
            throw ExitCode(66)
        }
        if self.verdict != .intact { throw self.exitCode }
    }
}
