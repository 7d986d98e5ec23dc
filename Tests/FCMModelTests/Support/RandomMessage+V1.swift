import FCMModel

extension RandomMessage {
    /// Draws a message of which nothing gets lost in v1, and the recipient of one call.
    static func forV1(using random: inout SplitMix64) throws -> (Message, V1Recipient) {
        let target: Target
        let recipient: V1Recipient
        switch try Self.target(using: &random) {
        case .topic(let name):
            target = .topic(name)
            recipient = .topic(name)
        case .condition(let condition):
            target = .condition(condition)
            recipient = .condition(condition)
        default:
            let token = "t" + RandomText.draw(0...30, using: &random)
            target = .token(token)
            recipient = .token(token)
        }
        return (Self.forV1(Self.message(for: target, using: &random), using: &random), recipient)
    }

    /// A message without what v1 drops on purpose, and now and then with the addresses that browsers get.
    private static func forV1(_ drawn: Message, using random: inout SplitMix64) -> Message {
        var message = drawn
        if var notification = message.notification {
            for key in [NotificationKey.icon, .clickAction] where notification[key] != nil && random.below(2) == 0 {
                notification[key] = random.pick([
                    "https://a.example/i", "HTTPS://a", "http://a", "https:/a", "https://",
                ])
            }
            if notification[.titleLocKey] == nil || notification.titleLocArgs == [] { notification.titleLocArgs = nil }
            if notification[.bodyLocKey] == nil || notification.bodyLocArgs == [] { notification.bodyLocArgs = nil }
            message.notification = notification.isEmpty ? nil : notification
        }
        if message.notification == nil { message.mutableContent = false }
        return message
    }
}
