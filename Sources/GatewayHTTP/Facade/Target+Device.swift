import FCMModel

extension Target {
    /// Whether a lone recipient is written like a topic.
    ///
    /// A legacy upstream would take it for one: no token may reach past a key's topic prefixes or the topic's own limit.
    var isDisguisedTopic: Bool {
        switch self {
        case .token(let text), .notificationKey(let text): TopicName.hasLegacyPrefix(text)
        case .tokens, .installation, .installations, .topic, .condition: false
        }
    }
}
