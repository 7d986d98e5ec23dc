@testable import GatewayCore

/// A table of retired tokens as one would explain it, slow and without marks packed together.
struct RetiredTokenModel {
    private struct Entry {
        var state: RetiredToken.State
        var replacement: UInt16?
        var reportedAt: Int
    }

    private var entries: [UInt64: Entry] = [:]
    private var detector: SpikeDetector

    init(detector: SpikeDetector) {
        self.detector = detector
    }

    /// - Returns: the tokens that become suspected.
    mutating func learn(_ reports: [RetiredTokenTable.Report], accepted: Int, at now: Timestamp) -> Set<UInt64> {
        let alive = reports.count { $0.evidence != .dead }
        let dead = Set(reports.filter { $0.evidence == .dead }.map(\.key))
            .filter { key in
                let state = self.entries[key]?.state
                return state != .pending && state != .unregistered
            }
        let transition = self.detector.note(accepted: accepted + alive, unregistered: dead.count, at: now)
        var suspected: Set<UInt64> = []
        if transition == .began {
            suspected = self.keys(in: .pending)
            for key in suspected { self.entries[key]?.state = .suspected }
        }
        for report in reports { self.note(report, at: now.seconds) }
        return suspected
    }

    private mutating func note(_ report: RetiredTokenTable.Report, at now: Int) {
        let known = self.entries[report.key]
        switch report.evidence {
        case .alive:
            if known?.state != .replaced { self.entries[report.key] = nil }
        case .replaced(_, let replacement):
            if let known, known.state == .replaced, known.replacement == replacement {
                if now - known.reportedAt >= 86_400 { self.entries[report.key]?.reportedAt = now }
            } else {
                self.entries[report.key] = Entry(state: .replaced, replacement: replacement, reportedAt: now)
            }
        case .dead:
            switch known?.state {
            case .pending:
                break
            case .unregistered:
                if now - (known?.reportedAt ?? 0) >= 86_400 { self.entries[report.key]?.reportedAt = now }
            case .suspected where self.detector.isSpiking:
                if now - (known?.reportedAt ?? 0) >= 86_400 { self.entries[report.key]?.reportedAt = now }
            case nil, .replaced, .suspected:
                self.entries[report.key] = Entry(
                    state: self.detector.isSpiking ? .suspected : .pending,
                    reportedAt: now
                )
            }
        }
    }

    /// - Returns: the tokens that are fed now.
    mutating func settle(at now: Timestamp) -> Set<UInt64> {
        _ = self.detector.note(accepted: 0, unregistered: 0, at: now)
        let due = self.keys(in: .pending).filter { now.seconds - (self.entries[$0]?.reportedAt ?? 0) >= 3_600 }
        for key in due { self.entries[key]?.state = .unregistered }
        return due
    }

    private func keys(in state: RetiredToken.State) -> Set<UInt64> {
        Set(self.entries.filter { $0.value.state == state }.keys)
    }

    /// What a table says otherwise than this; `nil` where they agree.
    func disagreement(with table: RetiredTokenTable, at now: Timestamp) -> String? {
        if table.count != self.entries.count { return "\(table.count) tokens instead of \(self.entries.count)" }
        if table.detector != self.detector { return "another detector" }
        for (key, entry) in self.entries {
            let mark = table.mark(of: key)
            if mark?.state != entry.state { return "\(key) is \(String(describing: mark)), not \(entry)" }
            let isDead = entry.state == .pending || entry.state == .unregistered
            let standing: RetiredTokenTable.Standing =
                isDead && now.seconds - entry.reportedAt < 86_400 ? .refused : .listed
            if table.standing(of: key, at: now) != standing { return "\(key) does not stand as \(standing)" }
        }
        for state in RetiredToken.State.allCases where table.count(of: state) != self.keys(in: state).count {
            return "\(table.count(of: state)) are \(state)"
        }
        return nil
    }
}
