import StrictJSON

/// Reads a v1 message as the legacy protocol would say it: TR-* backwards, if nothing is lost.
///
/// Where several platforms carry what is one field of legacy, they must agree or be silent. The content has passed the
/// checks of ``V1RequestDecoder``; what is left to refuse is what legacy has no place for, by the first such field.
struct V1LegacyTranslation {
    /// How far an `apns-expiration` may be from the end of the time to live, in seconds: clocks and the way here
    /// differ.
    private static let toleratedDrift = 5

    private let now: Int
    var message = Message()
    var notification = Notification()
    /// Headers of APNs that only make sense beside the rest.
    var apnsPriority: String?
    var apnsPushType: String?
    var apnsExpiration: Int?

    init(now: Int, dryRun: Bool) {
        self.now = now
        self.message.dryRun = dryRun
    }

    /// Translates the content.
    ///
    /// - Parameter content: the `message` object.
    /// - Returns: the message.
    /// - Throws: the first field that can't be carried.
    mutating func message(from content: JSONValue) throws(Refusal) -> Message {
        for (name, value) in Self.fields(of: content, .message) {
            switch name {
            case "token", "fid", "topic", "condition": break
            case "data": try self.readData(value)
            case "notification": try self.readNotification(value)
            case "android": try self.readAndroid(value)
            case "apns": try self.readAPNS(value)
            case "webpush": try self.readWebpush(value)
            default: throw .notCarried("message.\(name)")
            }
        }
        if !self.notification.isEmpty { self.message.notification = self.notification }
        try self.settleExpiration()
        try self.settleAPNSPriority()
        return self.message
    }

    // MARK: Agreement

    /// Takes a text over under a key that other platforms may carry too.
    mutating func carry(_ text: String, as key: NotificationKey, from path: String) throws(Refusal) {
        self.notification[key] = try Self.agreed(self.notification[key], text, path)
    }

    /// Takes a priority over, in the words of legacy.
    mutating func carryPriority(_ word: String, from path: String) throws(Refusal) {
        guard let priority = (word.protocolWord?.lowercased()).flatMap(Message.Priority.init) else {
            throw .notCarried(path)
        }
        guard self.message.priority ?? priority == priority else { throw .disagreement(path) }
        self.message.priority = priority
    }

    /// Takes a time to live over, in seconds.
    mutating func carryTimeToLive(_ seconds: Int, from path: String) throws(Refusal) {
        guard ValueRules.isTimeToLive(seconds) else { throw .notCarried(path) }
        guard self.message.timeToLive ?? seconds == seconds else { throw .disagreement(path) }
        self.message.timeToLive = seconds
    }

    /// Takes a collapse key over.
    mutating func carryCollapseKey(_ key: String, from path: String) throws(Refusal) {
        self.message.collapseKey = try Self.agreed(self.message.collapseKey, key, path)
    }

    /// A text that other platforms may carry too, compared by its bytes.
    static func agreed(_ present: String?, _ text: String, _ path: String) throws(Refusal) -> String {
        guard present?.utf8.elementsEqual(text.utf8) ?? true else { throw .disagreement(path) }
        return text
    }

    /// Arguments that other platforms may carry too.
    static func agreed(_ present: [String]?, _ texts: [String], _ path: String) throws(Refusal) -> [String] {
        let agree = present?.elementsEqual(texts) { $0.utf8.elementsEqual($1.utf8) } ?? true
        guard agree else { throw .disagreement(path) }
        return texts
    }

    // MARK: What depends on the rest

    private mutating func settleExpiration() throws(Refusal) {
        guard let expiration = self.apnsExpiration else { return }
        let path = "message.apns.headers.apns-expiration"
        let drift = Self.toleratedDrift
        let left = expiration - self.now
        if let seconds = self.message.timeToLive {
            let agrees = expiration == 0 ? seconds == 0 : abs(left - seconds) <= drift
            guard agrees else { throw .disagreement(path) }
        } else if expiration == 0 {
            self.message.timeToLive = 0
        } else {
            guard (-drift...Message.maxTimeToLive + drift).contains(left) else { throw .notCarried(path) }
            self.message.timeToLive = min(max(0, left), Message.maxTimeToLive)
        }
    }

    private mutating func settleAPNSPriority() throws(Refusal) {
        let path = "message.apns.headers.apns-priority"
        let isSilent = self.message.contentAvailable && self.message.notification == nil
        if self.apnsPushType != nil {
            // FCM derives the kind by itself; only a silent push says it (TR-SILENT).
            guard isSilent, self.apnsPushType?.protocolWord == "background" else {
                throw .notCarried("message.apns.headers.apns-push-type")
            }
        }
        switch self.apnsPriority.map({ $0.protocolWord ?? "" }) {
        case nil: break
        case "5" where isSilent: break
        case "5": try self.carryPriority("normal", from: path)
        case "10" where !isSilent: try self.carryPriority("high", from: path)
        default: throw .notCarried(path)
        }
    }

    // MARK: The common parts

    private mutating func readData(_ value: JSONValue) throws(Refusal) {
        for member in value.members.map(Array.init) ?? [] {
            let key = member.key
            guard !ValueRules.isRefusedDataKey(key) else { throw .badDataKey(key) }
            guard let text = member.value.string else { continue }
            self.message.data.append(DataEntry(key: key, value: text))
        }
    }

    private mutating func readNotification(_ value: JSONValue) throws(Refusal) {
        for (name, value) in Self.fields(of: value, .notification) {
            guard let key = NotificationKey(rawValue: name), let text = value.string else { continue }
            try self.carry(text, as: key, from: "message.notification.\(name)")
        }
    }

    /// The fields of a checked object by their names in `snake_case`, without those that are absent: `null`, and the
    /// empty text, which is protobuf's default.
    static func fields(of value: JSONValue, _ schema: V1Schema) -> [(name: String, value: JSONValue)] {
        var fields: [(name: String, value: JSONValue)] = []
        for member in value.members.map(Array.init) ?? [] {
            guard let field = schema[member.key], !member.value.isNull, member.value.string?.isEmpty != true else {
                continue
            }
            fields.append((field.name, member.value))
        }
        return fields
    }
}
