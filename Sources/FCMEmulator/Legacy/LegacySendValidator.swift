import Foundation

/// Checks one JSON request to `/fcm/send` in the order of L-ORDER.
///
/// It is stricter than FCM: it refuses unknown members, `null` and empty strings instead of skipping them, so that a
/// careless caller is caught before FCM guesses the meaning. It accepts, with a note, what the protocol allows but a
/// careful caller would not write.
struct LegacySendValidator {
    static let maxTokens = 1_000
    private let members: [String: JSONValue]
    var notes: [String] = []

    /// Checks the bytes of a request body.
    static func validate(_ body: [UInt8]) throws(LegacyRefusal) -> AcceptedMessage {
        var validator = LegacySendValidator(members: try Self.read(body))
        return try validator.message()
    }

    private init(members: [String: JSONValue]) {
        self.members = members
    }

    private static func read(_ body: [UInt8]) throws(LegacyRefusal) -> [String: JSONValue] {
        do {
            return try JSONValue.members(of: body)
        } catch {
            throw .malformedJSON(reason: error.reason)
        }
    }

    private mutating func message() throws(LegacyRefusal) -> AcceptedMessage {
        try self.checkTypes(of: self.members, kinds: LegacyFields.message, path: "")
        let notification = self.object("notification")
        try self.checkTypes(of: notification, kinds: LegacyFields.notification, path: "notification.")
        let data = try self.data()
        let target = try self.target()
        try self.checkPriority()
        try self.checkNotification(notification)
        let content = DeliveredMessage(
            data: data,
            notification: notification.mapValues(\.text),
            collapseKey: self.string("collapse_key"),
            priority: self.string("priority"),
            timeToLive: try self.timeToLive(target: target),
            contentAvailable: self.bool("content_available"),
            mutableContent: self.bool("mutable_content"),
            restrictedPackageName: self.string("restricted_package_name")
        )
        try PayloadRules.check(content, target: target)
        return AcceptedMessage(
            target: target,
            content: content,
            isDryRun: self.bool("dry_run") ?? false,
            notes: self.notes
        )
    }

    // MARK: Types

    private mutating func checkTypes(
        of members: [String: JSONValue],
        kinds: [String: LegacyFields.Kind],
        path: String
    ) throws(LegacyRefusal) {
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            let field = path + name
            guard let kind = kinds[name] else {
                throw .invalidParameters(reason: "unknown member \(field)")
            }
            if case .null = value {
                throw .invalidParameters(reason: "\(field) is null; leave it out instead")
            }
            guard LegacyFields.accepts(value, as: kind) else {
                throw .invalidParameters(reason: "\(field) must not be \(value.typeName)")
            }
            try self.checkContents(of: value, field: field, isIgnored: kind == .ignored)
        }
    }

    private mutating func checkContents(of value: JSONValue, field: String, isIgnored: Bool) throws(LegacyRefusal) {
        if isIgnored {
            self.notes.append("\(field) is ignored")
            return
        }
        switch value {
        case .string(""):
            throw .invalidParameters(reason: "\(field) is an empty string; leave it out instead")
        case .bool(false):
            self.notes.append("\(field) is false, which is its default")
        case .object(let members) where members.isEmpty:
            self.notes.append("\(field) is empty")
        case .null, .bool, .number, .string, .array, .object:
            break
        }
    }

    private mutating func data() throws(LegacyRefusal) -> [String: String] {
        var data: [String: String] = [:]
        for (key, value) in self.object("data").sorted(by: { $0.key < $1.key }) {
            switch value {
            case .null:
                throw .invalidParameters(reason: "data.\(key) is null; leave it out instead")
            case .string:
                break
            case .bool, .number, .array, .object:
                self.notes.append("data.\(key) is \(value.typeName), not a string")
            }
            data[key] = value.text
        }
        return data
    }

    // MARK: Targets

    private mutating func target() throws(LegacyRefusal) -> MessageTarget {
        let present = ["to", "registration_ids", "condition"].filter { self.members[$0] != nil }
        guard present.count <= 1 else {
            throw .invalidParameters(reason: "several targets: " + present.joined(separator: ", "))
        }
        if let key = self.string("notification_key") {
            guard !present.isEmpty else {
                self.notes.append("notification_key is deprecated; to does the same")
                return .device(key)
            }
            self.notes.append("notification_key is ignored beside another target")
        }
        if let to = self.string("to") {
            return try self.target(to: to)
        }
        if let condition = self.string("condition") {
            return .condition(try self.condition(condition))
        }
        guard case .array(let entries)? = self.members["registration_ids"] else {
            throw .failed(.missingRegistration, results: 1, reason: "no target")
        }
        guard (1...Self.maxTokens).contains(entries.count) else {
            throw .invalidParameters(reason: "registration_ids has \(entries.count) entries, 1 to 1000 are allowed")
        }
        return .devices(entries.map(\.text))
    }

    private func target(to: String) throws(LegacyRefusal) -> MessageTarget {
        guard to.hasPrefix(TopicName.prefix) else { return .device(to) }
        let name = to.dropFirst(TopicName.prefix.count)
        guard TopicName.isValid(name.utf8) else {
            throw .invalidParameters(reason: "bad topic name in to")
        }
        return .topic(String(name))
    }

    private mutating func condition(_ text: String) throws(LegacyRefusal) -> ConditionEvaluator {
        let condition: ConditionEvaluator
        do {
            condition = try ConditionEvaluator(text)
        } catch {
            throw .invalidParameters(reason: "bad condition: \(error.reason)")
        }
        if condition.canonical != text {
            self.notes.append("the condition is not in canonical form: \(condition.canonical)")
        }
        return condition
    }

    // MARK: Values

    private func checkPriority() throws(LegacyRefusal) {
        guard let priority = self.string("priority") else { return }
        guard priority == "normal" || priority == "high" else {
            throw .invalidParameters(reason: "priority is neither normal nor high")
        }
    }

    private func timeToLive(target: MessageTarget) throws(LegacyRefusal) -> Int? {
        guard case .number(let number)? = self.members["time_to_live"] else { return nil }
        guard let seconds = Int(exactly: number.doubleValue), PayloadRules.timeToLive.contains(seconds) else {
            let reason = "time_to_live is not an integer from 0 to 2419200"
            throw .failed(.invalidTTL, results: target.resultCount, reason: reason)
        }
        return seconds
    }

    // MARK: Access by name, after the types were checked

    private func string(_ name: String) -> String? {
        guard case .string(let text)? = self.members[name] else { return nil }
        return text
    }

    private func bool(_ name: String) -> Bool? {
        guard case .bool(let flag)? = self.members[name] else { return nil }
        return flag
    }

    private func object(_ name: String) -> [String: JSONValue] {
        guard case .object(let members)? = self.members[name] else { return [:] }
        return members
    }
}

/// Values of `notification` with a form of their own.
extension LegacySendValidator {
    private static let badges = 0...2_147_483_647

    /// Checks color, badge and the arguments of localised texts (L-COLOR, L-BADGE, L-LOCARGS).
    mutating func checkNotification(_ members: [String: JSONValue]) throws(LegacyRefusal) {
        if let color = members["color"], !Self.isColor(color.text) {
            throw .invalidParameters(reason: "notification.color is not #rrggbb")
        }
        if let badge = members["badge"] {
            try self.checkBadge(badge)
        }
        for name in ["title_loc_args", "body_loc_args"] {
            guard let value = members[name] else { continue }
            try self.checkArguments(value, field: "notification.\(name)")
        }
    }

    private static func isColor(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.count == 7 && bytes[0] == UInt8(ascii: "#") && bytes.dropFirst().allSatisfy(Self.isHexDigit)
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            return true
        default:
            return false
        }
    }

    private mutating func checkBadge(_ badge: JSONValue) throws(LegacyRefusal) {
        let value: Int?
        switch badge {
        case .number(let number):
            self.notes.append("notification.badge is a number, not a string")
            value = Int(exactly: number.doubleValue)
        case .string(let text):
            // `Int(_:)` also reads a sign.
            value = text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
        case .null, .bool, .array, .object:
            value = nil
        }
        guard let value, Self.badges.contains(value) else {
            throw .invalidParameters(reason: "notification.badge is not an integer from 0 to 2147483647")
        }
    }

    private mutating func checkArguments(_ value: JSONValue, field: String) throws(LegacyRefusal) {
        var list = value
        switch value {
        case .string(let text):
            guard let read = try? JSONValue.read(Array(text.utf8)) else {
                throw .invalidParameters(reason: "\(field) is not JSON")
            }
            list = read
        case .array:
            self.notes.append("\(field) is an array, not a string holding one")
        case .null, .bool, .number, .object:
            break
        }
        guard case .array(let entries) = list, entries.allSatisfy(Self.isArgument) else {
            throw .invalidParameters(reason: "\(field) is not an array of strings, numbers and booleans")
        }
    }

    private static func isArgument(_ value: JSONValue) -> Bool {
        switch value {
        case .string, .number, .bool: true
        case .null, .array, .object: false
        }
    }
}
