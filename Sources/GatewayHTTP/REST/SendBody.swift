import FCMModel
import GatewayCore
import StrictJSON

/// Reads the body of a send.
enum SendBody {
    static func read(_ members: JSONMembers) throws(Refusal) -> (target: Target, message: Message) {
        var reader = Reader()
        for member in members where !reader.problems.isFull {
            reader.read(member)
        }
        reader.finishBlocks()
        guard let target = reader.finishedTarget(), reader.problems.list.isEmpty else {
            throw Refusal(reader.problems.list)
        }
        return (target, reader.takeMessage())
    }
}

extension SendCommand {
    /// Creates the command to send a message in the form of the tenant's upstream. Throws the refusal of the first field
    /// that the legacy protocol can't express.
    convenience init(_ message: Message, to target: Target, by caller: Caller, at time: Timestamp) throws(Refusal) {
        guard message.platforms != nil, caller.profile.tenant.upstream == .legacy else {
            self.init(by: caller, to: target, message: message)
            return
        }
        self.init(by: caller, to: target, message: try message.withoutPlatforms(now: time.seconds))
    }
}

extension SendBody {
    /// Reads the members of a send one by one.
    struct Reader {
        enum Name: String, CaseIterable {
            case token, tokens, fid, fids, topic, condition
            case deviceGroup = "device_group"
            case notification, data, priority, ttl
            case collapseKey = "collapse_key"
            case contentAvailable = "content_available"
            case mutableContent = "mutable_content"
            case restrictedPackageName = "restricted_package_name"
            case dryRun = "dry_run"
            case android, apns, webpush
            case fcmOptions = "fcm_options"

            private static let all = Self.allCases
            private static let texts = JSONNames(Self.all.map(\.rawValue))

            init?(of member: JSONMember) {
                guard let place = member.keyPlace(in: Self.texts) else { return nil }
                self = Self.all[place]
            }
        }

        /// The members of a notification.
        private enum NotificationName {
            case text(NotificationKey)
            case badge, titleLocArgs, bodyLocArgs

            static let all = NotificationKey.allCases.map(Self.text) + [.badge, .titleLocArgs, .bodyLocArgs]
            private static let texts = JSONNames(Self.all.map(\.rawValue))

            init?(of member: JSONMember) {
                guard let place = member.keyPlace(in: Self.texts) else { return nil }
                self = Self.all[place]
            }

            var rawValue: String {
                switch self {
                case .text(let key): key.rawValue
                case .badge: "badge"
                case .titleLocArgs: "title_loc_args"
                case .bodyLocArgs: "body_loc_args"
                }
            }
        }

        private(set) var message = Message()
        private(set) var problems = FieldProblems()
        private var target: Target?
        private var targetCount = 0
        private var blocks: [(name: String, value: JSONValue)] = []

        private static let targetNames: [Name] = [.token, .tokens, .fid, .fids, .topic, .condition, .deviceGroup]
        /// The targets of a batch.
        static let listedNames: [Name] = [.tokens, .fids, .topic, .condition, .deviceGroup]

        private let maxRecipients: Int

        init(maxRecipients: Int = Target.maxRecipients) {
            self.maxRecipients = maxRecipients
        }

        /// Reads a member of an object that names recipients alone.
        mutating func readRecipients(_ member: JSONMember, among names: [Name]) {
            if let name = Name(of: member), names.contains(name) {
                self.read(name, member.value)
            } else {
                self.problems.unknown(member.key, among: names.map(\.rawValue))
            }
        }

        /// Reads a member of a message without recipients.
        mutating func readPayload(_ member: JSONMember) {
            guard !Self.isTarget(member) else { return self.problems.unknown(member.key, among: []) }
            self.read(member)
        }

        static func isTarget(_ member: JSONMember) -> Bool { Name(of: member).map(Self.targetNames.contains) ?? false }

        mutating func read(_ member: JSONMember) {
            guard let name = Name(of: member) else {
                return self.problems.unknown(member.key, among: Name.allCases.map(\.rawValue))
            }
            self.read(name, member.value)
        }

        private mutating func read(_ name: Name, _ value: JSONValue) {
            switch name {
            case .token, .tokens, .fid, .fids, .topic, .condition, .deviceGroup:
                self.targetCount += 1
                self.target = self.readTarget(name, value) ?? self.target
            case .notification: self.readNotification(value)
            case .data: self.readData(value)
            case .priority:
                self.message.priority = self.problems.word(value, as: Message.Priority.self, at: Self.pointer(name))
            case .ttl:
                let range = 0...Message.maxTimeToLive
                self.message.timeToLive = self.problems.integer(value, in: range, at: Self.pointer(name))
            case .collapseKey:
                self.message.collapseKey = self.problems.text(value, at: Self.pointer(name))
            case .contentAvailable:
                self.message.contentAvailable = self.problems.bool(value, at: Self.pointer(name)) ?? false
            case .mutableContent:
                self.message.mutableContent = self.problems.bool(value, at: Self.pointer(name)) ?? false
            case .restrictedPackageName:
                self.message.restrictedPackageName = self.problems.text(value, at: Self.pointer(name))
            case .dryRun:
                self.message.dryRun = self.problems.bool(value, at: Self.pointer(name)) ?? false
            case .android, .apns, .webpush, .fcmOptions:
                self.problems.check(value, asPlatform: name.rawValue)
                self.blocks.append((name.rawValue, value))
            }
        }

        /// Returns the message, which is large, without a copy.
        fileprivate mutating func takeMessage() -> Message {
            var message = Message()
            swap(&message, &self.message)
            return message
        }

        mutating func finishedTarget() -> Target? {
            guard self.targetCount == 1 else {
                let names = Self.targetNames.map(\.rawValue).joined(separator: ", ")
                let detail = self.targetCount == 0 ? "Name one target: \(names)" : "Name only one target: \(names)"
                self.problems.report(.invalidTarget, at: JSONPointer(), detail)
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

        private mutating func readTarget(_ name: Name, _ value: JSONValue) -> Target? {
            switch name {
            case .tokens:
                return self.readRecipients(name, value).map(Target.tokens)
            case .fids:
                return self.readRecipients(name, value).map(Target.installations)
            default:
                guard let text = self.problems.text(value, at: Self.pointer(name)) else { return nil }
                return self.readTarget(name, text: text)
            }
        }

        private mutating func readTarget(_ name: Name, text: String) -> Target? {
            switch name {
            case .token:
                guard self.checkRecipient(text, at: Self.pointer(name)) else { return nil }
                return .token(text)
            case .fid:
                guard self.checkRecipient(text, at: Self.pointer(name)) else { return nil }
                return .installation(text)
            case .topic:
                guard let topic = TopicName(text) else {
                    self.problems.report(
                        .invalidTarget,
                        at: Self.pointer(name),
                        "A topic is 1 to \(TopicName.maxLength) characters of A-Z a-z 0-9 - _ . ~ %, without /topics/"
                    )
                    return nil
                }
                return .topic(topic)
            case .condition:
                return self.readCondition(name, text).map(Target.condition)
            default:
                guard ValueRules.isGroupName(text), text.utf8.count <= DeviceGroupRoutes.maxNameBytes else {
                    self.problems.report(
                        .invalidTarget,
                        at: Self.pointer(name),
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

        private mutating func readCondition(_ name: Name, _ text: String) -> TopicCondition? {
            do {
                let condition = try TopicCondition(parsing: text)
                guard condition.fits(.v1) else {
                    self.problems.report(
                        .invalidTarget,
                        at: Self.pointer(name),
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
                self.problems.report(.invalidTarget, at: Self.pointer(name), detail)
                return nil
            }
        }

        private mutating func readRecipients(_ name: Name, _ value: JSONValue) -> [String]? {
            guard (1...self.maxRecipients).contains(value.elements?.count ?? 1) else {
                self.problems.report(
                    .invalidTarget,
                    at: Self.pointer(name),
                    "This must hold 1 to \(self.maxRecipients) entries"
                )
                return nil
            }
            guard let texts = self.problems.strings(value, atMost: self.maxRecipients, at: Self.pointer(name)) else {
                return nil
            }
            for (index, text) in texts.enumerated() {
                guard self.checkRecipient(text, at: Self.pointer(name).appending(index)) else { return nil }
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
            guard let members = self.problems.members(value, at: Self.pointer(.data)) else { return }
            self.message.data.reserveCapacity(members.count)
            for member in members where !self.problems.isFull {
                let key = member.key
                guard !ValueRules.isRefusedDataKey(key) else {
                    self.problems.report(
                        .invalidDataKey,
                        at: Self.pointer(.data).appending(key),
                        "FCM reserves the empty key, from, message_type and keys that start with google or gcm"
                    )
                    continue
                }
                if let text = self.problems.string(member.value, at: Self.pointer(.data).appending(key)) {
                    self.message.data.append(DataEntry(key: key, value: text))
                }
            }
        }

        private mutating func readNotification(_ value: JSONValue) {
            guard let members = self.problems.members(value, at: Self.pointer(.notification)) else { return }
            var notification = Notification()
            for member in members where !self.problems.isFull {
                func pointer() -> JSONPointer { Self.pointer(.notification).appending(member.key) }
                switch NotificationName(of: member) {
                case .text(let key):
                    guard let text = self.problems.text(member.value, at: pointer()) else { continue }
                    if key == .color, !ValueRules.isColor(text) {
                        self.problems.report(.invalidField, at: pointer(), "A color is # and six hexadecimal digits")
                    }
                    notification[key] = text
                case .badge:
                    notification.badge = self.problems.integer(member.value, in: 0...ValueRules.maxBadge, at: pointer())
                case .titleLocArgs:
                    notification.titleLocArgs = self.problems.strings(member.value, allowingEmpty: true, at: pointer())
                case .bodyLocArgs:
                    notification.bodyLocArgs = self.problems.strings(member.value, allowingEmpty: true, at: pointer())
                case nil:
                    let names = NotificationName.all.map(\.rawValue)
                    self.problems.unknown(member.key, in: Self.pointer(.notification), among: names)
                }
            }
            self.message.notification = notification.isEmpty ? nil : notification
        }

        private static func pointer(_ name: Name) -> JSONPointer { JSONPointer().appending(name.rawValue) }
    }
}
