/// The error names of the legacy protocol (T9), and names of its predecessor that still occur.
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
    // Names of the predecessor service, still seen on the wire.
    case missingCollapseKey = "MissingCollapseKey"
    case quotaExceeded = "QuotaExceeded"
    case deviceQuotaExceeded = "DeviceQuotaExceeded"

    /// Lower-case names without underscores, for look-ups.
    private static let byFoldedName = Dictionary(
        uniqueKeysWithValues: Self.allCases.map { (Array($0.rawValue.lowercased().utf8), $0) }
    )
    private static let maxNameBytes = 64

    /// Recognises a name as upstreams spell it. Ignores case, blanks and underscores, and everything after the first
    /// colon (N-SPELLING).
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

    private struct Row {
        let code: OutcomeCode
        /// The status of a form's answer (TB-PLAIN).
        var formStatus = 200
        var successor: LegacyErrorName?
        var field: String?
        var description = ""
    }

    private var row: Row {
        switch self {
        case .missingRegistration:
            Row(code: .invalidTarget, field: "message", description: "Recipient of the message is not set.")
        case .invalidRegistration:
            Row(
                code: .invalidToken,
                field: "message.token",
                description: "The registration token is not a valid FCM registration token"
            )
        case .notRegistered: Row(code: .unregistered)
        case .invalidPackageName:
            Row(
                code: .packageMismatch,
                field: "message.android.restricted_package_name",
                description: "The token belongs to another package"
            )
        case .mismatchSenderID: Row(code: .senderMismatch)
        case .invalidParameters: Row(code: .invalidField)
        case .messageTooBig:
            Row(code: .messageTooBig, field: "message", description: "The message is too big")
        case .invalidDataKey:
            Row(code: .invalidDataKey, field: "message.data", description: "Invalid data payload key")
        case .invalidTTL: Row(code: .invalidField, field: "message.android.ttl", description: "Invalid ttl")
        case .unavailable: Row(code: .upstreamUnavailable, formStatus: 503)
        case .internalServerError: Row(code: .upstreamInternal, formStatus: 500)
        case .deviceMessageRateExceeded: Row(code: .deviceRateExceeded)
        case .topicsMessageRateExceeded: Row(code: .topicRateExceeded)
        case .invalidAPNSCredential: Row(code: .upstreamCredentials)
        case .missingCollapseKey: Row(code: .invalidField, successor: .invalidParameters)
        case .quotaExceeded: Row(code: .upstreamUnavailable, formStatus: 503, successor: .unavailable)
        case .deviceQuotaExceeded: Row(code: .deviceRateExceeded, successor: .deviceMessageRateExceeded)
        }
    }

    /// The name that current clients know. A name of the predecessor is replaced by its T9 name.
    package var current: LegacyErrorName { self.row.successor ?? self }
    package var outcomeCode: OutcomeCode { self.row.code }
    var formStatus: Int { self.row.formStatus }
    /// The field to report to a v1 client. `nil` if the error concerns no single field.
    var v1Violation: V1Error.FieldViolation? {
        let row = self.row
        return row.field.map { V1Error.FieldViolation(field: $0, description: row.description) }
    }
}
