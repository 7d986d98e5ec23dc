import FCMModel

/// Draws messages that a decoder could have established, and targets that the legacy protocol knows.
enum RandomMessage {
    /// Draws a target of any kind with a legacy form; a group's key is left out, which decodes as a token.
    static func target(using random: inout SplitMix64) throws -> Target {
        switch random.below(4) {
        case 0:
            return .token("t" + RandomText.draw(0...30, using: &random))
        case 1:
            return .tokens((0...random.below(20)).map { _ in "t" + RandomText.draw(0...30, using: &random) })
        case 2:
            guard let name = TopicName(RandomText.topic(1...40, using: &random)) else { break }
            return .topic(name)
        default:
            return .condition(try TopicCondition(parsing: "'a' in topics && ('b' in topics || 'c%20' in topics)"))
        }
        throw VectorProblem("no valid topic was drawn")
    }

    /// Draws a message that fits a target's limit on size.
    static func message(for target: Target, using random: inout SplitMix64) -> Message {
        var message = Message()
        if random.below(2) == 0 { message.priority = random.pick(Message.Priority.allCases) }
        if random.below(2) == 0 {
            message.timeToLive = random.pick([0, 1, 60, Message.maxTimeToLive, random.below(Message.maxTimeToLive)])
        }
        if random.below(2) == 0 { message.collapseKey = RandomText.draw(1...20, using: &random) }
        if random.below(2) == 0 { message.restrictedPackageName = RandomText.draw(1...20, using: &random) }
        message.contentAvailable = random.below(2) == 0
        message.mutableContent = random.below(2) == 0
        message.dryRun = random.below(2) == 0
        let notification = Self.notification(using: &random)
        message.notification = notification.isEmpty ? nil : notification
        for index in 0..<random.below(12) {
            // The number keeps keys apart and out of the reserved ones.
            let key = "\(index):" + RandomText.draw(0...10, using: &random)
            message.data.append(DataEntry(key: key, value: RandomText.draw(0...40, using: &random)))
        }
        while message.payloadBytes > target.maxPayloadBytes, !message.data.isEmpty { message.data.removeLast() }
        if message.payloadBytes > target.maxPayloadBytes { message.notification = nil }
        return message
    }

    private static func notification(using random: inout SplitMix64) -> Notification {
        var notification = Notification()
        for key in NotificationKey.allCases where random.below(3) == 0 {
            notification[key] = key == .color ? "#09afAF" : RandomText.draw(1...20, using: &random)
        }
        if random.below(3) == 0 {
            notification.badge = random.pick([0, 1, ValueRules.maxBadge, random.below(1_000)])
        }
        if random.below(3) == 0 { notification.titleLocArgs = Self.arguments(using: &random) }
        if random.below(3) == 0 { notification.bodyLocArgs = Self.arguments(using: &random) }
        return notification
    }

    private static func arguments(using random: inout SplitMix64) -> [String] {
        (0..<random.below(4)).map { _ in RandomText.draw(0...10, using: &random) }
    }
}
