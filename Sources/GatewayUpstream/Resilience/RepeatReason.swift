/// Why a call is repeated; the raw value is the metrics' label.
enum RepeatReason: String, Sendable, CaseIterable {
    /// Nothing was sent.
    case notSent = "not_sent"
    /// FCM said that it is in trouble.
    case trouble = "upstream_5xx"
}
