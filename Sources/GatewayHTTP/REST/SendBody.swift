import FCMModel
import GatewayCore
import StrictJSON

/// The body of a send, read and checked.
struct SendBody {
    var target: Target
    var message: Message

    init(_ members: JSONMembers) throws(Refusal) {
        var reader = Reader()
        for member in members where !reader.problems.isFull {
            reader.read(member.key, member.value)
        }
        reader.finishBlocks()
        guard let target = reader.finishedTarget(), reader.problems.list.isEmpty else {
            throw Refusal(reader.problems.list)
        }
        self.target = target
        self.message = reader.message
    }
}

extension SendCommand {
    /// Creates the command to send a message in the form of the tenant's upstream. Throws the refusal of the first field
    /// that the legacy protocol can't express.
    convenience init(_ message: Message, to target: Target, by caller: Caller, at time: Timestamp) throws(Refusal) {
        guard message.platforms != nil, caller.profile.tenant.upstream == .legacy else {
            self.init(by: caller, to: target, message: message, payloadBytes: message.payloadBytes)
            return
        }
        let message = try message.withoutPlatforms(now: time.seconds)
        self.init(by: caller, to: target, message: message, payloadBytes: message.payloadBytes)
    }
}

extension SendBody {
    /// Reads the members of a send one by one.
    struct Reader {
        private static let names =
            [
                "token", "tokens", "fid", "fids", "topic", "condition", "device_group", "notification", "data",
                "priority", "ttl", "collapse_key", "content_available", "mutable_content", "restricted_package_name",
                "dry_run",
            ] + PlatformBlocks.names

        private(set) var message = Message()
        private(set) var problems = FieldProblems()
        private var target: Target?
        private var targetCount = 0
        private var blocks: [(name: String, value: JSONValue)] = []

        static let targetNames = ["token", "tokens", "fid", "fids", "topic", "condition", "device_group"]
        /// The targets of a batch.
        static let listedNames = ["tokens", "fids", "topic", "condition", "device_group"]

        private let maxRecipients: Int

        init(maxRecipients: Int = Target.maxRecipients) {
            self.maxRecipients = maxRecipients
        }

        /// Reads a member of an object that names recipients alone.
        mutating func readRecipients(_ key: String, _ value: JSONValue, among names: [String]) {
            if names.contains(key) { self.read(key, value) } else { self.problems.unknown(key, among: names) }
        }

        /// Reads a member of a message without recipients.
        mutating func readPayload(_ key: String, _ value: JSONValue) {
            guard !Self.targetNames.contains(key) else { return self.problems.unknown(key, among: []) }
            self.read(key, value)
        }

        mutating func read(_ key: String, _ value: JSONValue) {
            // The switch compares literals, because making an enumeration from a text compares all its cases.
            switch key.protocolWord {
            case "token", "tokens", "fid", "fids", "topic", "condition", "device_group":
                self.targetCount += 1
                self.target = self.readTarget(key, value) ?? self.target
            case "notification": self.readNotification(value)
            case "data": self.readData(value)
            case "priority":
                self.message.priority = self.problems.word(value, as: Message.Priority.self, at: Self.pointer(key))
            case "ttl":
                let range = 0...Message.maxTimeToLive
                self.message.timeToLive = self.problems.integer(value, in: range, at: Self.pointer(key))
            case "collapse_key":
                self.message.collapseKey = self.problems.text(value, at: Self.pointer(key))
            case "content_available":
                self.message.contentAvailable = self.problems.bool(value, at: Self.pointer(key)) ?? false
            case "mutable_content":
                self.message.mutableContent = self.problems.bool(value, at: Self.pointer(key)) ?? false
            case "restricted_package_name":
                self.message.restrictedPackageName = self.problems.text(value, at: Self.pointer(key))
            case "dry_run":
                self.message.dryRun = self.problems.bool(value, at: Self.pointer(key)) ?? false
            case "android", "apns", "webpush", "fcm_options":
                self.problems.check(value, asPlatform: key)
                self.blocks.append((key, value))
            default:
                self.problems.unknown(key, among: Self.names)
            }
        }

        mutating func finishedTarget() -> Target? {
            guard self.targetCount == 1 else {
                self.problems.report(
                    .invalidTarget,
                    at: JSONPointer(),
                    self.targetCount == 0
                        ? "Name one target: \(Self.targetNames.joined(separator: ", "))"
                        : "Name only one target: \(Self.targetNames.joined(separator: ", "))"
                )
                return nil
            }
            return self.target
        }

        /// Adds the blocks to the message after all members were read. They have no problems if there are none at all.
        mutating func finishBlocks() {
            guard !self.blocks.isEmpty, self.problems.list.isEmpty else { return }
            self.message.platforms = PlatformBlocks(self.blocks)
            if let bytes = self.message.platforms?.byteCount, bytes > PlatformBlocks.maxBytes {
                self.problems.report(
                    .messageTooBig,
                    at: JSONPointer(),
                    """
                    \(PlatformBlocks.names.joined(separator: ", ")) may have at most \(PlatformBlocks.maxBytes) bytes of JSON together
                    """
                )
            }
        }

        // MARK: Target

        private mutating func readTarget(_ key: String, _ value: JSONValue) -> Target? {
            switch key {
            case "tokens":
                return self.readRecipients(key, value).map(Target.tokens)
            case "fids":
                return self.readRecipients(key, value).map(Target.installations)
            default:
                guard let text = self.problems.text(value, at: Self.pointer(key)) else { return nil }
                return self.readTarget(key, text: text)
            }
        }

        private mutating func readTarget(_ key: String, text: String) -> Target? {
            switch key {
            case "token":
                guard self.checkRecipient(text, at: Self.pointer(key)) else { return nil }
                return .token(text)
            case "fid":
                guard self.checkRecipient(text, at: Self.pointer(key)) else { return nil }
                return .installation(text)
            case "topic":
                guard let topic = TopicName(text) else {
                    self.problems.report(
                        .invalidTarget,
                        at: Self.pointer(key),
                        "A topic is 1 to \(TopicName.maxLength) characters of A-Z a-z 0-9 - _ . ~ %, without /topics/"
                    )
                    return nil
                }
                return .topic(topic)
            case "condition":
                return self.readCondition(key, text).map(Target.condition)
            default:
                guard ValueRules.isGroupName(text), text.utf8.count <= DeviceGroupRoutes.maxNameBytes else {
                    self.problems.report(
                        .invalidTarget,
                        at: Self.pointer(key),
                        """
                        A device group's name has at most \(DeviceGroupRoutes.maxNameBytes) bytes, no control characters, and \
                        does not begin with \(ValueRules.reservedGroupPrefix)
                        """
                    )
                    return nil
                }
                return .deviceGroup(text)
            }
        }

        private mutating func readCondition(_ key: String, _ text: String) -> TopicCondition? {
            do {
                let condition = try TopicCondition(parsing: text)
                guard condition.fits(.v1) else {
                    self.problems.report(
                        .invalidTarget,
                        at: Self.pointer(key),
                        "A condition may name at most five topics"
                    )
                    return nil
                }
                return condition
            } catch {
                let detail =
                    switch error {
                    case .syntax(let offset):
                        "The condition breaks the grammar at byte \(offset); write it like 'a' in topics && 'b' in topics"
                    case .topicName(let offset):
                        "The topic name at byte \(offset) is empty, too long, or has characters that topics may not have"
                    case .tooDeep(let offset):
                        "More than \(TopicCondition.maxDepth) parentheses are open at byte \(offset)"
                    }
                self.problems.report(.invalidTarget, at: Self.pointer(key), detail)
                return nil
            }
        }

        private mutating func readRecipients(_ key: String, _ value: JSONValue) -> [String]? {
            guard (1...self.maxRecipients).contains(value.elements?.count ?? 1) else {
                self.problems.report(
                    .invalidTarget,
                    at: Self.pointer(key),
                    "This must hold 1 to \(self.maxRecipients) entries"
                )
                return nil
            }
            guard let texts = self.problems.strings(value, atMost: self.maxRecipients, at: Self.pointer(key)) else {
                return nil
            }
            for (index, text) in texts.enumerated() {
                guard self.checkRecipient(text, at: Self.pointer(key).appending(index)) else { return nil }
            }
            return texts
        }

        /// Refuses recipients that the legacy protocol would read as topics: no token may bypass a key's topic prefixes
        /// or the topic's own limit.
        private mutating func checkRecipient(_ text: String, at pointer: @autoclosure () -> JSONPointer) -> Bool {
            if TopicName.hasLegacyPrefix(text) {
                self.problems.report(.invalidTarget, at: pointer(), "This is a topic, not a device; use topic instead")
                return false
            }
            return self.problems.checkToken(text, at: pointer())
        }

        // MARK: Payload

        private mutating func readData(_ value: JSONValue) {
            guard let members = self.problems.members(value, at: Self.pointer("data")) else { return }
            self.message.data.reserveCapacity(members.count)
            for member in members where !self.problems.isFull {
                let key = member.key
                guard !ValueRules.isRefusedDataKey(key) else {
                    self.problems.report(
                        .invalidDataKey,
                        at: Self.pointer("data").appending(key),
                        "FCM reserves the empty key, from, message_type and keys that start with google or gcm"
                    )
                    continue
                }
                if let text = self.problems.string(member.value, at: Self.pointer("data").appending(key)) {
                    self.message.data.append(DataEntry(key: key, value: text))
                }
            }
        }

        private mutating func readNotification(_ value: JSONValue) {
            guard let members = self.problems.members(value, at: Self.pointer("notification")) else { return }
            var notification = Notification()
            for member in members where !self.problems.isFull {
                let key = member.key
                func pointer() -> JSONPointer { Self.pointer("notification").appending(key) }
                let name = key.protocolWord
                if let known = name.flatMap(NotificationKey.init) {
                    guard let text = self.problems.text(member.value, at: pointer()) else { continue }
                    if known == .color, !ValueRules.isColor(text) {
                        self.problems.report(.invalidField, at: pointer(), "A color is # and six hexadecimal digits")
                    }
                    notification[known] = text
                } else if name == "badge" {
                    notification.badge = self.problems.integer(member.value, in: 0...ValueRules.maxBadge, at: pointer())
                } else if name == "title_loc_args" {
                    notification.titleLocArgs = self.problems.strings(member.value, allowingEmpty: true, at: pointer())
                } else if name == "body_loc_args" {
                    notification.bodyLocArgs = self.problems.strings(member.value, allowingEmpty: true, at: pointer())
                } else {
                    let names = NotificationKey.allCases.map(\.rawValue) + ["badge", "title_loc_args", "body_loc_args"]
                    self.problems.unknown(key, in: Self.pointer("notification"), among: names)
                }
            }
            self.message.notification = notification.isEmpty ? nil : notification
        }

        private static func pointer(_ key: String) -> JSONPointer {
            JSONPointer().appending(key)
        }
    }
}
