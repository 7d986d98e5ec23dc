/// All that `doctor` found.
struct Diagnosis: Sendable {
    /// What was found, in the order of the checks.
    let findings: [Finding]

    /// Sorts findings by their checks.
    init(_ findings: [Finding]) {
        let order = Finding.Check.allCases
        self.findings = order.flatMap { check in findings.filter { $0.check == check } }
    }

    /// The worst of the findings.
    var status: Finding.Status { self.findings.map(\.status).max() ?? .ok }

    /// The findings as a table, each piece of advice below its finding, or as an object.
    func output(json: Bool) throws -> CommandOutput {
        json ? CommandOutput(try self.object.prettyText()) : CommandOutput(self.table.styled, remark: self.summary)
    }

    private var table: TextTable {
        var rows: [[StyledText]] = []
        for finding in self.findings {
            let status = finding.status.rawValue
            let seen = [finding.subject, finding.seen].compactMap(\.self).joined(separator: ": ")
            rows.append([
                StyledText(status, Tone(status, column: "status")), StyledText(finding.check.rawValue),
                StyledText(JSONValue.printable(seen)),
            ])
            if let advice = finding.advice {
                rows.append([StyledText(""), StyledText(""), StyledText("  → \(JSONValue.printable(advice))")])
            }
        }
        return TextTable(titles: ["STATUS", "CHECK", "SEEN"], rows: rows)
    }

    private var summary: String {
        let problems = self.count(.problem)
        let warnings = self.count(.warning)
        guard problems + warnings > 0 else { return "all is well" }
        let parts = [(problems, "problem"), (warnings, "warning")].filter { $0.0 > 0 }
        return parts.map { "\($0.0) \($0.1)\($0.0 == 1 ? "" : "s")" }.joined(separator: ", ")
    }

    private func count(_ status: Finding.Status) -> Int {
        self.findings.count { $0.status == status }
    }

    private var object: JSONValue {
        .object([
            "status": .string(self.status.rawValue),
            "counts": .object(
                Dictionary(
                    uniqueKeysWithValues: Finding.Status.allCases.map { ($0.rawValue, .integer(self.count($0))) }
                )
            ),
            "findings": .array(
                self.findings.map { finding in
                    var members: [String: JSONValue] = [
                        "check": .string(finding.check.rawValue), "status": .string(finding.status.rawValue),
                        "seen": .string(finding.seen),
                    ]
                    members["subject"] = finding.subject.map(JSONValue.string)
                    members["advice"] = finding.advice.map(JSONValue.string)
                    return .object(members)
                }
            ),
        ])
    }
}
