import StrictJSON

extension V1LegacyTranslation {
    // MARK: Android

    /// Reads `android`.
    mutating func readAndroid(_ value: JSONValue) throws(Refusal) {
        for (name, value) in Self.fields(of: value, .android) {
            let path = "message.android.\(name)"
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

    private mutating func readAndroidNotification(_ value: JSONValue) throws(Refusal) {
        for (name, value) in Self.fields(of: value, .androidNotification) {
            let path = "message.android.notification.\(name)"
            switch name {
            case "title_loc_args": try self.carryTitleLocArgs(value, from: path)
            case "body_loc_args": try self.carryBodyLocArgs(value, from: path)
            default:
                guard let key = Self.key(ofAndroid: name) else { throw .notCarried(path) }
                try self.carry(value.string ?? "", as: key, from: path)
            }
        }
    }

    /// The keys of T2b.
    private static func key(ofAndroid name: String) -> NotificationKey? {
        switch name {
        case "channel_id": .androidChannelID
        case "title", "body", "sound", "icon", "color", "tag", "click_action", "title_loc_key", "body_loc_key":
            NotificationKey(rawValue: name)
        default: nil
        }
    }

    // MARK: Apple

    /// Reads `apns`.
    mutating func readAPNS(_ value: JSONValue) throws(Refusal) {
        for (name, value) in Self.fields(of: value, .apns) {
            switch name {
            case "headers": try self.readAPNSHeaders(value)
            case "payload": try self.readPayload(value)
            default: throw .notCarried("message.apns.\(name)")
            }
        }
    }

    private mutating func readAPNSHeaders(_ value: JSONValue) throws(Refusal) {
        guard let headers = value.members else { return }
        for header in headers {
            guard let text = header.value.string else { continue }
            let name = header.key
            let path = Refusal.path("message.apns.headers", name)
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

    private mutating func readPayload(_ value: JSONValue) throws(Refusal) {
        for member in value.members.map(Array.init) ?? [] where !member.value.isNull {
            let path = Refusal.path("message.apns.payload", member.key)
            guard member.keyEquals("aps"), let aps = member.value.members else { throw .notCarried(path) }
            for member in aps where !member.value.isNull {
                try self.readAPS(member.key, member.value)
            }
        }
    }

    private mutating func readAPS(_ name: String, _ value: JSONValue) throws(Refusal) {
        let path = Refusal.path("message.apns.payload.aps", name)
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
    private mutating func readAlert(_ name: String, _ value: JSONValue) throws(Refusal) {
        let path = Refusal.path("message.apns.payload.aps.alert", name)
        switch name.protocolWord {
        case "title": try self.carry(Self.text(value, path), as: .title, from: path)
        case "subtitle": try self.carry(Self.text(value, path), as: .subtitle, from: path)
        case "body": try self.carry(Self.text(value, path), as: .body, from: path)
        case "loc-key": try self.carry(Self.text(value, path), as: .bodyLocKey, from: path)
        case "title-loc-key": try self.carry(Self.text(value, path), as: .titleLocKey, from: path)
        case "loc-args": try self.carryBodyLocArgs(value, from: path)
        case "title-loc-args": try self.carryTitleLocArgs(value, from: path)
        default: throw .notCarried(path)
        }
    }

    // MARK: Web

    /// Reads `webpush`.
    mutating func readWebpush(_ value: JSONValue) throws(Refusal) {
        for (name, value) in Self.fields(of: value, .webpush) {
            switch name {
            case "headers": try self.readWebpushHeaders(value)
            case "notification":
                for member in value.members.map(Array.init) ?? [] where !member.value.isNull {
                    let path = Refusal.path("message.webpush.notification", member.key)
                    guard member.keyEquals("icon") else { throw .notCarried(path) }
                    try self.carry(Self.text(member.value, path), as: .icon, from: path)
                }
            case "fcm_options":
                for (name, value) in Self.fields(of: value, .webpushOptions) {
                    let path = "message.webpush.fcm_options.\(name)"
                    guard name == "link" else { throw .notCarried(path) }
                    try self.carry(Self.text(value, path), as: .clickAction, from: path)
                }
            default: throw .notCarried("message.webpush.\(name)")
            }
        }
    }

    private mutating func readWebpushHeaders(_ value: JSONValue) throws(Refusal) {
        guard let headers = value.members else { return }
        for header in headers {
            guard let text = header.value.string else { continue }
            let name = header.key
            let path = Refusal.path("message.webpush.headers", name)
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

    private mutating func carryTitleLocArgs(_ value: JSONValue, from path: String) throws(Refusal) {
        guard let texts = try Self.texts(value, path) else { return }
        self.notification.titleLocArgs = try Self.agreed(self.notification.titleLocArgs, texts, path)
    }

    private mutating func carryBodyLocArgs(_ value: JSONValue, from path: String) throws(Refusal) {
        guard let texts = try Self.texts(value, path) else { return }
        self.notification.bodyLocArgs = try Self.agreed(self.notification.bodyLocArgs, texts, path)
    }

    /// A list of texts; `nil` for an empty one, which is absent.
    private static func texts(_ value: JSONValue, _ path: String) throws(Refusal) -> [String]? {
        guard let elements = value.elements else { throw .notCarried(path) }
        var texts: [String] = []
        for element in elements {
            guard let text = element.string else { throw .notCarried(path) }
            texts.append(text)
        }
        return texts.isEmpty ? nil : texts
    }

    /// A text where v1 takes anything; legacy has no empty ones.
    private static func text(_ value: JSONValue, _ path: String) throws(Refusal) -> String {
        guard let text = value.string, !text.isEmpty else { throw .notCarried(path) }
        return text
    }
}
