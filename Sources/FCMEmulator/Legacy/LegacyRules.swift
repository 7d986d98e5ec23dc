/// The allowed members of a legacy JSON request, and their types (T1, T2).
enum LegacyFields {
    enum Kind {
        case string
        case boolean
        case number
        case strings
        case object
        /// Any type; the member is ignored (L-DWI).
        case ignored
        /// A string of digits or a number (L-BADGE).
        case badge
        /// An array, or a string that contains one (L-LOCARGS).
        case list
    }

    static let message: [String: Kind] = [
        "to": .string,
        "registration_ids": .strings,
        "condition": .string,
        "notification_key": .string,
        "collapse_key": .string,
        "priority": .string,
        "content_available": .boolean,
        "mutable_content": .boolean,
        "delay_while_idle": .ignored,
        "time_to_live": .number,
        "restricted_package_name": .string,
        "dry_run": .boolean,
        "data": .object,
        "notification": .object,
    ]

    /// The members of `notification`, for all platforms together.
    static let notification: [String: Kind] = [
        "title": .string,
        "body": .string,
        "subtitle": .string,
        "sound": .string,
        "badge": .badge,
        "icon": .string,
        "image": .string,
        "android_channel_id": .string,
        "tag": .string,
        "color": .string,
        "click_action": .string,
        "title_loc_key": .string,
        "body_loc_key": .string,
        "title_loc_args": .list,
        "body_loc_args": .list,
    ]

    static func accepts(_ value: JSONValue, as kind: Kind) -> Bool {
        switch (kind, value) {
        case (.ignored, _):
            return true
        case (.string, .string), (.boolean, .bool), (.number, .number), (.object, .object):
            return true
        case (.badge, .string), (.badge, .number), (.list, .string), (.list, .array):
            return true
        case (.strings, .array(let entries)):
            return entries.allSatisfy { entry in
                guard case .string = entry else { return false }
                return true
            }
        case (.string, _), (.boolean, _), (.number, _), (.object, _), (.badge, _), (.list, _), (.strings, _):
            return false
        }
    }
}

/// The limits of T1, T3 and T9 that are common to JSON and forms.
enum PayloadRules {
    /// The allowed values of `time_to_live`, in seconds: up to four weeks.
    static let timeToLive = 0...2_419_200
    /// Largest payload to devices, in bytes.
    static let maxDeviceBytes = 4_096
    /// Largest payload to a topic or condition, in bytes.
    static let maxTopicBytes = 2_048

    /// True if FCM reserves the key, or no platform could deliver it (L-RESERVED, L-EMPTYKEY).
    static func isForbidden(dataKey key: String) -> Bool {
        key.isEmpty || key == "from" || key == "message_type" || key.hasPrefix("google") || key.hasPrefix("gcm")
    }

    /// Returns the bytes of keys and values together (L-SIZE).
    static func byteCount(_ pairs: [String: String]...) -> Int {
        pairs.joined().reduce(0) { sum, pair in sum + pair.key.utf8.count + pair.value.utf8.count }
    }

    static func check(
        _ content: DeliveredMessage,
        target: MessageTarget
    ) throws(LegacyRefusal) {
        if let key = content.data.keys.sorted().first(where: Self.isForbidden) {
            throw .failed(.invalidDataKey, results: target.resultCount, reason: "the data key \"\(key)\" is reserved")
        }
        let size = Self.byteCount(content.data, content.notification)
        let limit = target.resultCount == nil ? Self.maxTopicBytes : Self.maxDeviceBytes
        guard size <= limit else {
            let reason = "the payload has \(size) bytes, \(limit) are allowed"
            throw .failed(.messageTooBig, results: target.resultCount, reason: reason)
        }
    }
}

/// The error names of the legacy protocol, as on the wire (T9).
enum LegacyErrorName: String, Sendable, CaseIterable {
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
    case invalidAPNsCredential = "InvalidApnsCredential"
}

/// The reason why a send request is refused before any recipient is checked.
///
/// The reasons appear in the journal and in the answer's member `reason`.
enum LegacyRefusal: Error, Equatable {
    /// The body is not JSON: status 400 with text.
    case malformedJSON(reason: String)
    /// A parameter has the wrong name, type or value: status 400, in a form `Error=InvalidParameters`.
    case invalidParameters(reason: String)
    /// An error of T9 with status 200, repeated for each result; without results in the shape of T6.
    case failed(LegacyErrorName, results: Int?, reason: String)

    var reason: String {
        switch self {
        case .malformedJSON(let reason), .invalidParameters(let reason), .failed(_, _, let reason): reason
        }
    }
}
