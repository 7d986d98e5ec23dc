import StrictJSON

/// A result of one check of `doctor`.
struct Finding: Sendable, Equatable {
    enum Status: String, Sendable, CaseIterable, Comparable {
        case ok
        /// The gateway works, but needs attention.
        case warning
        /// The gateway does not work, or does not work as intended.
        case problem

        static func < (left: Status, right: Status) -> Bool {
            Self.allCases.firstIndex(of: left) ?? 0 < Self.allCases.firstIndex(of: right) ?? 0
        }
    }

    /// The checks, in the order of printing. Programs identify findings by these names.
    enum Check: String, Sendable, CaseIterable {
        case configuration
        case files
        case certificates
        case dataDirectory = "data_directory"
        case store
        case audit
        case limits
        case resources
        case listeners
        case credentials
    }

    var check: Check
    /// The thing examined, such as a file or a tenant; `nil` if the check's name is enough.
    var subject: String?
    var status: Status
    /// The observation. Never holds a secret.
    var seen: String
    /// Advice; `nil` if there is nothing to do.
    var advice: String?

    static func ok(_ check: Check, _ subject: String?, _ seen: String) -> Finding {
        Finding(check: check, subject: subject, status: .ok, seen: seen)
    }

    static func warning(_ check: Check, _ subject: String?, _ seen: String, _ advice: String) -> Finding {
        Finding(check: check, subject: subject, status: .warning, seen: seen, advice: advice)
    }

    static func problem(_ check: Check, _ subject: String?, _ seen: String, _ advice: String) -> Finding {
        Finding(check: check, subject: subject, status: .problem, seen: seen, advice: advice)
    }
}

/// All findings of `doctor`.
struct Diagnosis: Sendable {
    /// The findings, in the order of the checks.
    let findings: [Finding]

    init(_ findings: [Finding]) {
        self.findings = Finding.Check.allCases.flatMap { check in findings.filter { $0.check == check } }
    }

    var status: Finding.Status { self.findings.map(\.status).max() ?? .ok }

    func output(json: Bool) -> CommandOutput {
        guard json else { return CommandOutput(self.table.styled, remark: self.summary) }
        return .json { writer in
            writer.member("status", self.status.rawValue)
            writer.object("counts") { writer in
                for status in Finding.Status.allCases {
                    writer.key(status.rawValue)
                    writer.integer(self.count(status))
                }
            }
            writer.array("findings", self.findings) { writer, finding in
                writer.object { writer in
                    writer.member("check", finding.check.rawValue)
                    writer.member("status", finding.status.rawValue)
                    writer.member("subject", ifPresent: finding.subject)
                    writer.member("seen", finding.seen)
                    writer.member("advice", ifPresent: finding.advice)
                }
            }
        }
    }

    private var table: TextTable {
        var rows: [[StyledText]] = []
        for finding in self.findings {
            let status = finding.status.rawValue
            let seen = [finding.subject, finding.seen].compactMap(\.self).joined(separator: ": ")
            rows.append([
                StyledText(status, StyledText.Tone(status, column: "status")), StyledText(finding.check.rawValue),
                StyledText(seen.printable),
            ])
            if let advice = finding.advice {
                rows.append([StyledText(""), StyledText(""), StyledText("  → \(advice.printable)")])
            }
        }
        return TextTable(titles: ["STATUS", "CHECK", "SEEN"], rows: rows)
    }

    private var summary: String {
        let counts = [(self.count(.problem), "problem"), (self.count(.warning), "warning")].filter { $0.0 > 0 }
        guard !counts.isEmpty else { return "all is well" }
        return counts.map { "\($0.0) \($0.1)\($0.0 == 1 ? "" : "s")" }.joined(separator: ", ")
    }

    private func count(_ status: Finding.Status) -> Int {
        self.findings.count { $0.status == status }
    }
}
