/// FCM's word on one recipient, with what is needed to write it down.
struct RetiredTokenReport: Sendable {
    /// The word itself.
    var finding: RetiredTokenBook.Finding
    /// What the recipient is.
    var kind: RetiredTokenKind
    /// The token.
    var text: String
    /// The token that FCM named instead.
    var replacement: String?
}

/// A change on its way to the store.
enum RetiredTokenDraft: Sendable {
    /// Ready to be stored.
    case ready(RetiredTokenChange)
    /// An entry whose token has to be sealed first, which is done away from event loops.
    case put(RetiredTokenReport, RetiredTokenState, keepsSince: Bool, at: Timestamp, in: RetiredTokenLedger)

    /// What its tokens take in memory; a change without a token takes next to nothing.
    var byteCount: Int {
        switch self {
        case .ready: 0
        case .put(let report, _, _, _, _): report.text.utf8.count + (report.replacement?.utf8.count ?? 0)
        }
    }

    /// The change to be stored; `nil` where sealing failed.
    var sealed: RetiredTokenChange? {
        switch self {
        case .ready(let change):
            return change
        case .put(let report, let state, let keepsSince, let time, let ledger):
            let key = report.finding.key
            guard let sealed = ledger.sealer.seal(report.text, replacement: report.replacement, at: key) else {
                return nil
            }
            var replacement: UInt16 = 0
            if case .replaced(let bits) = report.finding.evidence { replacement = bits }
            let row = RetiredTokenRow(
                key: key,
                kind: report.kind,
                state: state,
                since: time,
                reportedAt: time,
                replacement: replacement,
                sealed: sealed
            )
            return .put(ledger.owner, row, keepsSince: keepsSince)
        }
    }
}
