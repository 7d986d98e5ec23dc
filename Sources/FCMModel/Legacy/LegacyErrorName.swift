/// The error names of the legacy protocol (T9), and those seen from its predecessor.
package enum LegacyErrorName: String, Sendable, Hashable, CaseIterable {
    case missingRegistration = "MissingRegistration"
    case invalidRegistration = "InvalidRegistration"
    case notRegistered = "NotRegistered"
    case invalidPackageName = "InvalidPackageName"
    case mismatchSenderID = "MismatchSenderId"
    case invalidParameters = "InvalidParameters"
    case messageTooBig = "MessageTooBig"
    case invalidDataKey = "InvalidDataKey"
    case invalidTTL = "InvalidTtl"
    case unavailable = "Unavailable"
    case internalServerError = "InternalServerError"
    case deviceMessageRateExceeded = "DeviceMessageRateExceeded"
    case topicsMessageRateExceeded = "TopicsMessageRateExceeded"
    case invalidAPNSCredential = "InvalidApnsCredential"
    // Words of the predecessor service, still seen on the wire.
    case missingCollapseKey = "MissingCollapseKey"
    case quotaExceeded = "QuotaExceeded"
    case deviceQuotaExceeded = "DeviceQuotaExceeded"

    /// Names without case and underscores, for look-ups.
    private static let byFoldedName = Dictionary(
        uniqueKeysWithValues: Self.allCases.map { (Array($0.rawValue.lowercased().utf8), $0) }
    )
    /// Far longer than any name.
    private static let maxNameBytes = 64

    /// Recognises a name as upstreams spell it: without regard to case, blanks and underscores, and only up to the
    /// first colon (N-SPELLING).
    package init?(wireText: some StringProtocol) {
        var word: [UInt8] = []
        for byte in wireText.utf8.prefix(while: { $0 != UInt8(ascii: ":") }) {
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "_"), 0x09...0x0D: continue
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): word.append(byte | 0x20)
            default: word.append(byte)
            }
            guard word.count <= Self.maxNameBytes else { return nil }
        }
        guard let name = Self.byFoldedName[word] else { return nil }
        self = name
    }

    /// The name that today's clients know: a word of the predecessor gives way to that of T9.
    package var current: LegacyErrorName {
        switch self {
        case .missingCollapseKey: .invalidParameters
        case .quotaExceeded: .unavailable
        case .deviceQuotaExceeded: .deviceMessageRateExceeded
        case .missingRegistration, .invalidRegistration, .notRegistered, .invalidPackageName, .mismatchSenderID,
            .invalidParameters, .messageTooBig, .invalidDataKey, .invalidTTL, .unavailable, .internalServerError,
            .deviceMessageRateExceeded, .topicsMessageRateExceeded, .invalidAPNSCredential:
            self
        }
    }

    /// The REST code with the same meaning.
    package var outcomeCode: OutcomeCode {
        switch self {
        case .missingRegistration: .invalidTarget
        case .invalidRegistration: .invalidToken
        case .notRegistered: .unregistered
        case .invalidPackageName: .packageMismatch
        case .mismatchSenderID: .senderMismatch
        case .messageTooBig: .messageTooBig
        case .invalidDataKey: .invalidDataKey
        case .invalidTTL, .invalidParameters, .missingCollapseKey: .invalidField
        case .unavailable, .quotaExceeded: .upstreamUnavailable
        case .internalServerError: .upstreamInternal
        case .deviceMessageRateExceeded, .deviceQuotaExceeded: .deviceRateExceeded
        case .topicsMessageRateExceeded: .topicRateExceeded
        case .invalidAPNSCredential: .upstreamCredentials
        }
    }
}
