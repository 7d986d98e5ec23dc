/// How a token stands on the list of retired tokens.
package enum RetiredTokenState: String, Sendable, Hashable, CaseIterable {
    /// FCM called it unregistered less than an hour ago: refused, not fed yet. Next: `unregistered`, `suspected`, gone.
    case pending
    /// FCM called it unregistered, and no jump followed: refused for a day after each report, and fed. Next: gone.
    case unregistered
    /// FCM called it unregistered amid a jump: neither refused nor fed. Next: `pending`, `replaced`, gone.
    case suspected
    /// FCM knows the device by another token: not refused, and fed. Next: `pending`, `suspected`, `replaced`.
    case replaced

    /// Whether tokens of this state appear in the feed.
    package var isFed: Bool {
        switch self {
        case .unregistered, .replaced: true
        case .pending, .suspected: false
        }
    }
}
