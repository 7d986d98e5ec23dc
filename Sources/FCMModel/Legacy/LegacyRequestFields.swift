import StrictJSON

/// The members of a legacy request with their types checked and nothing else.
///
/// `null` and, for texts, the empty string count as absent (L-NULL, L-EMPTY); unknown members and `delay_while_idle` are
/// ignored (L-UNKNOWN, L-DWI).
struct LegacyRequestFields {
    private(set) var to: String?
    private(set) var registrationIDs: [String]?
    private(set) var condition: String?
    private(set) var notificationKey: String?
    private(set) var collapseKey: String?
    private(set) var priority: String?
    private(set) var contentAvailable = false
    private(set) var mutableContent = false
    private(set) var timeToLive: JSONNumber?
    private(set) var restrictedPackageName: String?
    private(set) var dryRun = false
    private(set) var data: JSONMembers?
    private(set) var notification: JSONMembers?

    init(document: JSONDocument) throws(Refusal) {
        guard let members = document.root.members else {
            throw Refusal(.malformedJSON, "The request must be a JSON object")
        }
        for member in members where !member.value.isNull {
            guard let key = member.key.protocolWord else { continue }
            try self.read(key, member.value)
        }
    }

    private mutating func read(_ key: String, _ value: JSONValue) throws(Refusal) {
        switch key {
        case "to": self.to = try Self.text(key, value)
        case "registration_ids": self.registrationIDs = try Self.texts(key, value)
        case "condition": self.condition = try Self.text(key, value)
        case "notification_key": self.notificationKey = try Self.text(key, value)
        case "collapse_key": self.collapseKey = try Self.text(key, value)
        case "priority": self.priority = try Self.text(key, value)
        case "content_available": self.contentAvailable = try Self.flag(key, value)
        case "mutable_content": self.mutableContent = try Self.flag(key, value)
        case "time_to_live":
            guard let number = value.number else { throw Refusal(.invalidField, "\(key) must be a number") }
            self.timeToLive = number
        case "restricted_package_name": self.restrictedPackageName = try Self.text(key, value)
        case "dry_run": self.dryRun = try Self.flag(key, value)
        case "data": self.data = try Self.object(key, value)
        case "notification":
            let members = try Self.object(key, value)
            for member in members where !member.value.isNull {
                try LegacyNotificationDecoder.checkType(of: member)
            }
            self.notification = members
        default: break
        }
    }

    private static func text(_ key: String, _ value: JSONValue) throws(Refusal) -> String? {
        guard let text = value.string else { throw Refusal(.invalidField, "\(key) must be a string") }
        return text.isEmpty ? nil : text
    }

    private static func texts(_ key: String, _ value: JSONValue) throws(Refusal) -> [String] {
        guard let elements = value.elements else { throw Refusal(.invalidField, "\(key) must be an array of strings") }
        var texts: [String] = []
        texts.reserveCapacity(elements.count)
        for element in elements {
            guard let text = element.string else { throw Refusal(.invalidField, "\(key) must be an array of strings") }
            texts.append(text)
        }
        return texts
    }

    private static func flag(_ key: String, _ value: JSONValue) throws(Refusal) -> Bool {
        guard let flag = value.bool else { throw Refusal(.invalidField, "\(key) must be a boolean") }
        return flag
    }

    private static func object(_ key: String, _ value: JSONValue) throws(Refusal) -> JSONMembers {
        guard let members = value.members else { throw Refusal(.invalidField, "\(key) must be an object") }
        return members
    }
}
