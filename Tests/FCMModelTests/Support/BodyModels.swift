import FCMModel
import NIOCore

/// What a legacy body must hold, derived from the translation table and from nothing that writes bodies.
enum LegacyBodyModel {
    /// The members that a message has, and no others.
    static func body(of message: Message, to target: Target) throws -> VectorJSON {
        var members = [try Self.target(target)]
        func add(_ key: String, _ value: VectorJSON?) {
            if let value { members.append(VectorJSON.Member(key: key, value: value)) }
        }
        add("priority", message.priority.map { .string($0.rawValue) })
        add("time_to_live", try message.timeToLive.map { try .integer($0) })
        add("collapse_key", message.collapseKey.map { .string($0) })
        add("restricted_package_name", message.restrictedPackageName.map { .string($0) })
        add("content_available", message.contentAvailable ? .bool(true) : nil)
        add("mutable_content", message.mutableContent ? .bool(true) : nil)
        add("dry_run", message.dryRun ? .bool(true) : nil)
        add("notification", try message.notification.map { try Self.notification($0) })
        if !message.data.isEmpty {
            add("data", .object(message.data.map { VectorJSON.Member(key: $0.key, value: .string($0.value)) }))
        }
        return .object(members)
    }

    private static func target(_ target: Target) throws -> VectorJSON.Member {
        switch target {
        case .token(let text), .notificationKey(let text): .init(key: "to", value: .string(text))
        case .topic(let name): .init(key: "to", value: .string("/topics/\(name.text)"))
        case .tokens(let tokens): .init(key: "registration_ids", value: .array(tokens.map { .string($0) }))
        case .condition(let condition): .init(key: "condition", value: .string(condition.canonical))
        case .installation, .installations: throw VectorProblem("the legacy protocol has no installation ids")
        case .deviceGroup: throw VectorProblem("a group is sent to by its key")
        }
    }

    private static func notification(_ notification: Notification) throws -> VectorJSON {
        var members: [VectorJSON.Member] = []
        for key in NotificationKey.allCases {
            if let text = notification[key] { members.append(.init(key: key.rawValue, value: .string(text))) }
        }
        if let badge = notification.badge { members.append(.init(key: "badge", value: .string(String(badge)))) }
        for (key, arguments) in [
            ("title_loc_args", notification.titleLocArgs), ("body_loc_args", notification.bodyLocArgs),
        ] {
            guard let arguments else { continue }
            let list = VectorJSON.array(arguments.map { .string($0) }).serialised()
            members.append(.init(key: key, value: .string(String(buffer: list))))
        }
        return .object(members)
    }
}

/// What a v1 body must hold, derived from the translation table and from nothing that writes bodies.
struct V1BodyModel {
    private(set) var body = VectorJSON.object([])
    private let message: Message
    private let notification: Notification?

    /// The members that the call of a message has in v1, and no others.
    static func body(of message: Message, to target: Target, at index: Int = 0, now: Int) throws -> VectorJSON {
        var model = V1BodyModel(message)
        switch target {
        case .token(let text), .notificationKey(let text): model.set("message.token", .string(text))
        case .tokens(let texts): model.set("message.token", .string(texts[index]))
        case .installation(let text): model.set("message.fid", .string(text))
        case .installations(let texts): model.set("message.fid", .string(texts[index]))
        case .topic(let name): model.set("message.topic", .string(name.text))
        case .condition(let condition): model.set("message.condition", .string(condition.canonical))
        case .deviceGroup: throw VectorProblem("a group is sent to by its key")
        }
        if message.dryRun { model.set("validate_only", .bool(true)) }
        for entry in message.data {
            model.set(["message", "data", entry.key], .string(entry.value))
        }
        try model.setOptions(now: now)
        try model.setNotification()
        return model.body
    }

    private init(_ message: Message) {
        self.message = message
        self.notification = message.notification.flatMap { $0.texts.isEmpty && $0.badge == nil ? nil : $0 }
    }

    private mutating func setOptions(now: Int) throws {
        if let priority = self.message.priority {
            self.set("message.android.priority", .string(priority == .high ? "HIGH" : "NORMAL"))
            self.set("message.webpush.headers.Urgency", .string(priority == .high ? "high" : "normal"))
            if self.notification != nil {
                self.set("message.apns.headers.apns-priority", .string(priority == .high ? "10" : "5"))
            }
        }
        if let seconds = self.message.timeToLive {
            self.set("message.android.ttl", .string("\(seconds)s"))
            self.set("message.webpush.headers.TTL", .string("\(seconds)"))
            self.set("message.apns.headers.apns-expiration", .string(seconds == 0 ? "0" : "\(now + seconds)"))
        }
        if let key = self.message.collapseKey {
            self.set("message.android.collapse_key", .string(key))
            if key.utf8.count <= 64 { self.set("message.apns.headers.apns-collapse-id", .string(key)) }
        }
        if let name = self.message.restrictedPackageName {
            self.set("message.android.restricted_package_name", .string(name))
        }
        if self.message.contentAvailable {
            self.set("message.apns.payload.aps.content-available", try .integer(1))
            if self.notification == nil {
                self.set("message.apns.headers.apns-priority", .string("5"))
                self.set("message.apns.headers.apns-push-type", .string("background"))
            }
        }
        if self.message.mutableContent, self.notification != nil {
            self.set("message.apns.payload.aps.mutable-content", try .integer(1))
        }
    }

    private mutating func setNotification() throws {
        guard let notification = self.notification else { return }
        let hasAlert =
            notification[.subtitle] != nil || notification[.titleLocKey] != nil
            || notification[.bodyLocKey] != nil
        for (key, paths, alertKey) in Self.places {
            guard let text = notification[key] else { continue }
            for path in paths { self.set("message.\(path)", .string(text)) }
            if hasAlert, let alertKey { self.set("message.apns.payload.aps.alert.\(alertKey)", .string(text)) }
            guard text.lowercased().hasPrefix("https://") else { continue }
            if key == .icon { self.set("message.webpush.notification.icon", .string(text)) }
            if key == .clickAction { self.set("message.webpush.fcm_options.link", .string(text)) }
        }
        if let badge = notification.badge { self.set("message.apns.payload.aps.badge", try .integer(badge)) }
        for (key, arguments, name, alertKey) in [
            (NotificationKey.titleLocKey, notification.titleLocArgs, "title_loc_args", "title-loc-args"),
            (.bodyLocKey, notification.bodyLocArgs, "body_loc_args", "loc-args"),
        ] {
            guard let arguments, !arguments.isEmpty, notification[key] != nil else { continue }
            let list = VectorJSON.array(arguments.map { .string($0) })
            self.set("message.android.notification.\(name)", list)
            self.set("message.apns.payload.aps.alert.\(alertKey)", list)
        }
    }

    /// Where each text goes: always, and into an alert object if there is one.
    private static let places: [(NotificationKey, [String], String?)] = [
        (.title, ["notification.title"], "title"),
        (.body, ["notification.body"], "body"),
        (.image, ["notification.image"], nil),
        (.subtitle, [], "subtitle"),
        (.sound, ["android.notification.sound", "apns.payload.aps.sound"], nil),
        (.icon, ["android.notification.icon"], nil),
        (.color, ["android.notification.color"], nil),
        (.tag, ["android.notification.tag"], nil),
        (.clickAction, ["android.notification.click_action", "apns.payload.aps.category"], nil),
        (.androidChannelID, ["android.notification.channel_id"], nil),
        (.titleLocKey, ["android.notification.title_loc_key"], "title-loc-key"),
        (.bodyLocKey, ["android.notification.body_loc_key"], "loc-key"),
    ]

    private mutating func set(_ path: String, _ value: VectorJSON) {
        self.set(path.split(separator: ".").map(String.init), value)
    }

    private mutating func set(_ path: [String], _ value: VectorJSON) {
        self.body = Self.setting(value, at: path[...], in: self.body)
    }

    private static func setting(_ value: VectorJSON, at path: ArraySlice<String>, in object: VectorJSON) -> VectorJSON {
        guard let name = path.first else { return value }
        guard case .object(var members) = object else { return object }
        let place = members.firstIndex { $0.key.utf8.elementsEqual(name.utf8) }
        let old = place.map { members[$0].value } ?? .object([])
        let member = VectorJSON.Member(key: name, value: Self.setting(value, at: path.dropFirst(), in: old))
        if let place { members[place] = member } else { members.append(member) }
        return .object(members)
    }
}
