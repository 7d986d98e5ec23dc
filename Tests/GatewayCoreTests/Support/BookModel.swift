@testable import GatewayCore

/// A book of retired tokens as one would explain it, slow and without marks packed together.
struct BookModel {
    private struct Entry {
        var state: RetiredTokenState
        var replacement: UInt16?
        var reportedAt: Int
    }

    private var entries: [UInt64: Entry] = [:]
    private var purgeGuard: PurgeGuard

    init(guardedBy purgeGuard: PurgeGuard) {
        self.purgeGuard = purgeGuard
    }

    /// - Returns: the tokens that become suspected.
    mutating func learn(_ findings: [RetiredTokenBook.Finding], accepted: Int, at now: Timestamp) -> Set<UInt64> {
        let alive = findings.count { $0.evidence != .dead }
        let dead = Set(findings.filter { $0.evidence == .dead }.map(\.key))
            .filter { key in
                let state = self.entries[key]?.state
                return state != .pending && state != .unregistered
            }
        let transition = self.purgeGuard.note(accepted: accepted + alive, unregistered: dead.count, at: now)
        var suspected: Set<UInt64> = []
        if transition == .began {
            suspected = self.keys(in: .pending)
            for key in suspected { self.entries[key]?.state = .suspected }
        }
        for finding in findings { self.note(finding, at: now.seconds) }
        return suspected
    }

    private mutating func note(_ finding: RetiredTokenBook.Finding, at now: Int) {
        let known = self.entries[finding.key]
        switch finding.evidence {
        case .alive:
            if known?.state != .replaced { self.entries[finding.key] = nil }
        case .replaced(let replacement):
            if let known, known.state == .replaced, known.replacement == replacement {
                if now - known.reportedAt >= 86_400 { self.entries[finding.key]?.reportedAt = now }
            } else {
                self.entries[finding.key] = Entry(state: .replaced, replacement: replacement, reportedAt: now)
            }
        case .dead:
            switch known?.state {
            case .pending:
                break
            case .unregistered:
                if now - (known?.reportedAt ?? 0) >= 86_400 { self.entries[finding.key]?.reportedAt = now }
            case .suspected where self.purgeGuard.isJumping:
                if now - (known?.reportedAt ?? 0) >= 86_400 { self.entries[finding.key]?.reportedAt = now }
            case nil, .replaced, .suspected:
                self.entries[finding.key] = Entry(
                    state: self.purgeGuard.isJumping ? .suspected : .pending,
                    reportedAt: now
                )
            }
        }
    }

    /// - Returns: the tokens that are fed now.
    mutating func settle(at now: Timestamp) -> Set<UInt64> {
        let due = self.keys(in: .pending).filter { now.seconds - (self.entries[$0]?.reportedAt ?? 0) >= 3_600 }
        for key in due { self.entries[key]?.state = .unregistered }
        return due
    }

    private func keys(in state: RetiredTokenState) -> Set<UInt64> {
        Set(self.entries.filter { $0.value.state == state }.keys)
    }

    /// What a book says otherwise than this; `nil` where they agree.
    func disagreement(with book: RetiredTokenBook, at now: Timestamp) -> String? {
        if book.count != self.entries.count { return "\(book.count) tokens instead of \(self.entries.count)" }
        if book.purgeGuard != self.purgeGuard { return "another guard" }
        for (key, entry) in self.entries {
            let mark = book.mark(of: key)
            if mark?.state != entry.state { return "\(key) is \(String(describing: mark)), not \(entry)" }
            let isDead = entry.state == .pending || entry.state == .unregistered
            let standing: RetiredTokenBook.Standing =
                isDead && now.seconds - entry.reportedAt < 86_400 ? .refused : .listed
            if book.standing(of: key, at: now) != standing { return "\(key) does not stand as \(standing)" }
        }
        for state in RetiredTokenState.allCases where book.count(of: state) != self.keys(in: state).count {
            return "\(book.count(of: state)) are \(state)"
        }
        return nil
    }
}
