/// The limits of T1, T3 and T9 that JSON and forms share.
enum PayloadRules {
    /// Allowed values of `time_to_live`, in seconds: up to four weeks.
    static let timeToLive = 0...2_419_200

    /// Largest payload to devices, in bytes.
    static let maxDeviceBytes = 4_096

    /// Largest payload to a topic or condition, in bytes.
    static let maxTopicBytes = 2_048

    /// Whether FCM keeps the key for itself, or no platform could deliver it (L-RESERVED, L-EMPTYKEY).
    static func isForbidden(dataKey key: String) -> Bool {
        key.isEmpty || key == "from" || key == "message_type" || key.hasPrefix("google") || key.hasPrefix("gcm")
    }

    /// Keys and values together, in bytes (L-SIZE).
    static func byteCount(_ pairs: [String: String]...) -> Int {
        pairs.joined().reduce(0) { sum, pair in sum + pair.key.utf8.count + pair.value.utf8.count }
    }

    /// Checks data keys, then the size.
    static func check(
        _ content: DeliveredMessage,
        target: LegacyTarget
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
