import StrictJSON

/// Translates a v1 message into the legacy form, by the reverse of the TR-* rules.
///
/// Nothing is lost: a field that legacy lacks is refused. If several platforms set the same legacy field, their values
/// must agree. ``V1RequestDecoder`` has already checked the content.
struct V1LegacyTranslation {
    /// The tolerated difference, in seconds, between an `apns-expiration` and the end of the time to live. Clocks
    /// differ, and the request takes time.
    private static let toleratedDrift = 5

    /// A field that legacy can't express.
    enum Failure: Error {
        case notCarried(V1Path)
        /// The field differs from the same option of another platform.
        case disagreement(V1Path)
        case badDataKey(String)
    }

    private let now: Int
    private var message: Message
    private var notification: Notification
    /// APNs headers, kept until the rest of the message has been read.
    private var apnsPriority: String?
    private var apnsPushType: String?
    private var apnsExpiration: Int?

    /// Begins with a message to which the translated fields are added.
    init(of message: Message, now: Int) {
        self.now = now
        self.message = message
        self.notification = message.notification ?? Notification()
    }

    /// Returns the translated message. If `null` has a meaning, it removes a platform's field, which legacy can't do.
    mutating func message(from content: JSONValue, refusingNull: Bool = false) throws(Failure) -> Message {
        if refusingNull, let path = Self.null(in: content, at: "") { throw .notCarried(path) }
        for (name, value) in Self.fields(of: content, .message) {
            switch name {
            case "token", "fid", "topic", "condition": break
            case "data": try self.readData(value)
            case "notification": try self.readNotification(value)
            case "android": try self.readAndroid(value)
            case "apns": try self.readAPNS(value)
            case "webpush": try self.readWebpush(value)
            default: throw .notCarried("\(name)")
            }
        }
        if !self.notification.isEmpty { self.message.notification = self.notification }
        try self.settleExpiration()
        try self.settleAPNSPriority()
        return self.message
    }

    private static func null(in value: JSONValue, at path: V1Path) -> V1Path? {
        guard !value.isNull else { return path }
        for member in value.members.map(Array.init) ?? [] {
            if let found = Self.null(in: member.value, at: path.appending(member.key)) { return found }
        }
        return nil
    }

    // MARK: Agreement

    /// Stores a text under a key that other platforms may set too.
    private mutating func carry(_ text: String, as key: NotificationKey, from path: V1Path) throws(Failure) {
        self.notification[key] = try Self.agreed(self.notification[key], text, path)
    }

    private mutating func carryPriority(_ word: String, from path: V1Path) throws(Failure) {
        guard let priority = (word.protocolWord?.lowercased()).flatMap(Message.Priority.init) else {
            throw .notCarried(path)
        }
        guard self.message.priority ?? priority == priority else { throw .disagreement(path) }
        self.message.priority = priority
    }

    private mutating func carryTimeToLive(_ seconds: Int, from path: V1Path) throws(Failure) {
        guard ValueRules.isTimeToLive(seconds) else { throw .notCarried(path) }
        guard self.message.timeToLive ?? seconds == seconds else { throw .disagreement(path) }
        self.message.timeToLive = seconds
    }

    private mutating func carryCollapseKey(_ key: String, from path: V1Path) throws(Failure) {
        self.message.collapseKey = try Self.agreed(self.message.collapseKey, key, path)
    }

    /// Returns the text if no other platform has set a different text. Compares bytes.
    private static func agreed(_ present: String?, _ text: String, _ path: V1Path) throws(Failure) -> String {
        guard present?.utf8.elementsEqual(text.utf8) ?? true else { throw .disagreement(path) }
        return text
    }

    /// Stores a list of texts that other platforms may set too. An empty list counts as absent.
    private mutating func carry(
        _ value: JSONValue,
        as arguments: WritableKeyPath<Notification, [String]?>,
        from path: V1Path
    ) throws(Failure) {
        guard let texts = value.texts else { throw .notCarried(path) }
        guard !texts.isEmpty else { return }
        let present = self.notification[keyPath: arguments] ?? texts
        guard present.elementsEqual(texts, by: { $0.utf8.elementsEqual($1.utf8) }) else { throw .disagreement(path) }
        self.notification[keyPath: arguments] = texts
    }

    // MARK: Headers of APNs

    private mutating func settleExpiration() throws(Failure) {
        guard let expiration = self.apnsExpiration else { return }
        let path: V1Path = "apns.headers.apns-expiration"
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

    private mutating func settleAPNSPriority() throws(Failure) {
        let path: V1Path = "apns.headers.apns-priority"
        let isSilent = self.message.contentAvailable && self.message.notification == nil
        if self.apnsPushType != nil {
            // FCM derives the push type itself. Only a silent push states it (TR-SILENT).
            guard isSilent, self.apnsPushType?.protocolWord == "background" else {
                throw .notCarried("apns.headers.apns-push-type")
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

    private mutating func readData(_ value: JSONValue) throws(Failure) {
        for member in value.members.map(Array.init) ?? [] {
            let key = member.key
            guard !ValueRules.isRefusedDataKey(key) else { throw .badDataKey(key) }
            guard let text = member.value.string else { continue }
            self.message.data.append(DataEntry(key: key, value: text))
        }
    }

    private mutating func readNotification(_ value: JSONValue) throws(Failure) {
        for (name, value) in Self.fields(of: value, .notification) {
            guard let key = NotificationKey(rawValue: name), let text = value.string else { continue }
            try self.carry(text, as: key, from: "notification.\(name)")
        }
    }

    /// Returns the fields of a checked object by their names in `snake_case`. Leaves out absent fields. `null` and the
    /// empty text, which is protobuf's default, count as absent.
    private static func fields(of value: JSONValue, _ schema: V1Schema) -> [(name: String, value: JSONValue)] {
        var fields: [(name: String, value: JSONValue)] = []
        for member in value.members.map(Array.init) ?? [] {
            guard let field = schema[member.key], !member.value.isNull, member.value.string?.isEmpty != true else {
                continue
            }
            fields.append((field.name, member.value))
        }
        return fields
    }

    // MARK: Android

    private mutating func readAndroid(_ value: JSONValue) throws(Failure) {
        for (name, value) in Self.fields(of: value, .android) {
            let path: V1Path = "android.\(name)"
            let text = value.string ?? ""
            switch name {
            case "collapse_key": try self.carryCollapseKey(text, from: path)
            case "priority": try self.carryPriority(text, from: path)
            case "ttl":
                guard let duration = V1Duration(text), !duration.hasFraction else { throw .notCarried(path) }
                try self.carryTimeToLive(duration.seconds, from: path)
            case "restricted_package_name": self.message.restrictedPackageName = text
            case "notification": try self.readAndroidNotification(value)
            default: throw .notCarried(path)
            }
        }
    }

    private mutating func readAndroidNotification(_ value: JSONValue) throws(Failure) {
        for (name, value) in Self.fields(of: value, .androidNotification) {
            let path: V1Path = "android.notification.\(name)"
            switch name {
            case "title_loc_args": try self.carry(value, as: \.titleLocArgs, from: path)
            case "body_loc_args": try self.carry(value, as: \.bodyLocArgs, from: path)
            default:
                guard let key = Self.key(ofAndroid: name) else { throw .notCarried(path) }
                try self.carry(value.string ?? "", as: key, from: path)
            }
        }
    }

    /// Returns the key for a field of T2b.
    private static func key(ofAndroid name: String) -> NotificationKey? {
        switch name {
        case "channel_id": .androidChannelID
        case "title", "body", "sound", "icon", "color", "tag", "click_action", "title_loc_key", "body_loc_key":
            NotificationKey(rawValue: name)
        default: nil
        }
    }

    // MARK: Apple

    private mutating func readAPNS(_ value: JSONValue) throws(Failure) {
        for (name, value) in Self.fields(of: value, .apns) {
            switch name {
            case "headers": try self.readAPNSHeaders(value)
            case "payload": try self.readPayload(value)
            default: throw .notCarried("apns.\(name)")
            }
        }
    }

    private mutating func readAPNSHeaders(_ value: JSONValue) throws(Failure) {
        for (name, text) in Self.headers(value) {
            let path = V1Path("apns.headers").appending(name)
            switch name.protocolWord?.lowercased() {
            case "apns-priority": self.apnsPriority = try Self.agreed(self.apnsPriority, text, path)
            case "apns-push-type": self.apnsPushType = try Self.agreed(self.apnsPushType, text, path)
            case "apns-collapse-id" where !text.isEmpty: try self.carryCollapseKey(text, from: path)
            case "apns-expiration":
                guard let seconds = Int(digits: text) else { throw .notCarried(path) }
                guard self.apnsExpiration ?? seconds == seconds else { throw .disagreement(path) }
                self.apnsExpiration = seconds
            default: throw .notCarried(path)
            }
        }
    }

    private mutating func readPayload(_ value: JSONValue) throws(Failure) {
        for member in value.members.map(Array.init) ?? [] where !member.value.isNull {
            let path = V1Path("apns.payload").appending(member.key)
            guard member.keyEquals("aps"), let aps = member.value.members else { throw .notCarried(path) }
            for member in aps where !member.value.isNull {
                try self.readAPS(member.key, member.value)
            }
        }
    }

    private mutating func readAPS(_ name: String, _ value: JSONValue) throws(Failure) {
        let path = V1Path("apns.payload.aps").appending(name)
        switch name.protocolWord {
        case "badge":
            guard let badge = value.number?.integer, (0...ValueRules.maxBadge).contains(badge) else {
                throw .notCarried(path)
            }
            self.notification.badge = badge
        case "sound": try self.carry(Self.text(value, path), as: .sound, from: path)
        case "category": try self.carry(Self.text(value, path), as: .clickAction, from: path)
        case "content-available":
            guard value.number?.integer == 1 else { throw .notCarried(path) }
            self.message.contentAvailable = true
        case "mutable-content":
            guard value.number?.integer == 1 else { throw .notCarried(path) }
            self.message.mutableContent = true
        case "alert":
            guard let members = value.members else { throw .notCarried(path) }
            for member in members where !member.value.isNull {
                try self.readAlert(member.key, member.value)
            }
        default: throw .notCarried(path)
        }
    }

    /// Reads one key of an alert object (TR-ALERT).
    private mutating func readAlert(_ name: String, _ value: JSONValue) throws(Failure) {
        let path = V1Path("apns.payload.aps.alert").appending(name)
        switch name.protocolWord {
        case "title": try self.carry(Self.text(value, path), as: .title, from: path)
        case "subtitle": try self.carry(Self.text(value, path), as: .subtitle, from: path)
        case "body": try self.carry(Self.text(value, path), as: .body, from: path)
        case "loc-key": try self.carry(Self.text(value, path), as: .bodyLocKey, from: path)
        case "title-loc-key": try self.carry(Self.text(value, path), as: .titleLocKey, from: path)
        case "loc-args": try self.carry(value, as: \.bodyLocArgs, from: path)
        case "title-loc-args": try self.carry(value, as: \.titleLocArgs, from: path)
        default: throw .notCarried(path)
        }
    }

    // MARK: Web

    private mutating func readWebpush(_ value: JSONValue) throws(Failure) {
        for (name, value) in Self.fields(of: value, .webpush) {
            switch name {
            case "headers": try self.readWebpushHeaders(value)
            case "notification":
                for member in value.members.map(Array.init) ?? [] where !member.value.isNull {
                    let path = V1Path("webpush.notification").appending(member.key)
                    guard member.keyEquals("icon") else { throw .notCarried(path) }
                    try self.carry(Self.text(member.value, path), as: .icon, from: path)
                }
            case "fcm_options":
                for (name, value) in Self.fields(of: value, .webpushOptions) {
                    let path: V1Path = "webpush.fcm_options.\(name)"
                    guard name == "link" else { throw .notCarried(path) }
                    try self.carry(Self.text(value, path), as: .clickAction, from: path)
                }
            default: throw .notCarried("webpush.\(name)")
            }
        }
    }

    private mutating func readWebpushHeaders(_ value: JSONValue) throws(Failure) {
        for (name, text) in Self.headers(value) {
            let path = V1Path("webpush.headers").appending(name)
            switch name.protocolWord?.lowercased() {
            case "ttl":
                guard let seconds = Int(digits: text) else { throw .notCarried(path) }
                try self.carryTimeToLive(seconds, from: path)
            case "urgency": try self.carryPriority(text, from: path)
            default: throw .notCarried(path)
            }
        }
    }

    // MARK: Values

    private static func headers(_ value: JSONValue) -> [(name: String, text: String)] {
        value.members?.compactMap { header in header.value.string.map { (name: header.key, text: $0) } } ?? []
    }

    /// Returns the text in a field for which v1 accepts any value. Refuses the empty text, because legacy has no empty
    /// texts.
    private static func text(_ value: JSONValue, _ path: V1Path) throws(Failure) -> String {
        guard let text = value.string, !text.isEmpty else { throw .notCarried(path) }
        return text
    }
}

extension V1LegacyTranslation.Failure {
    /// The refusal by the v1 facade.
    var refusal: Refusal {
        switch self {
        case .notCarried(let path): .notCarried(V1Path("message").appending(path))
        case .disagreement(let path): .disagreement(V1Path("message").appending(path))
        case .badDataKey(let key): .badDataKey(key)
        }
    }

    /// The failure in the words of the REST API.
    var field: Refusal.Field {
        switch self {
        case .notCarried(let path):
            Refusal.Field(
                .invalidField,
                at: path.pointer.description,
                "This tenant sends by the legacy protocol, which can't express this"
            )
        case .disagreement(let path):
            Refusal.Field(
                .invalidField,
                at: path.pointer.description,
                "This differs from the same option elsewhere; the legacy protocol, by which this tenant sends, has one for all "
                    + "platforms"
            )
        case .badDataKey: Refusal.Field(.invalidDataKey, at: "/data", "FCM reserves this key")
        }
    }
}
