/// Whom a message is for.
package enum Target: Sendable, Hashable {
    /// One registration token.
    case token(String)
    /// 1 to 1,000 registration tokens; repeated ones are separate recipients.
    case tokens([String])
    /// One Firebase installation id, which only HTTP v1 knows.
    case installation(String)
    /// 1 to 1,000 Firebase installation ids.
    case installations([String])
    /// All subscribers of a topic.
    case topic(TopicName)
    /// All devices whose subscriptions satisfy an expression.
    case condition(TopicCondition)
    /// A device group by FCM's own opaque key.
    case notificationKey(String)

    /// The most recipients that one request may list.
    package static let maxRecipients = 1_000

    /// The kind without the value, for metrics, audit and answers.
    package var kind: TargetKind {
        switch self {
        case .token: .token
        case .tokens: .tokens
        case .installation: .installation
        case .installations: .installations
        case .topic: .topic
        case .condition: .condition
        case .notificationKey: .group
        }
    }

    /// How many outcomes an answer holds: one for each listed recipient, one for anything else.
    package var recipientCount: Int {
        switch self {
        case .tokens(let tokens): tokens.count
        case .installations(let ids): ids.count
        case .token, .installation, .topic, .condition, .notificationKey: 1
        }
    }

    /// How long an answer may be that holds so many outcomes, in bytes: several times what FCM writes, which names a
    /// message of some fifty characters, or an error, for each.
    package static func maxAnswerBytes(recipients: Int) -> Int {
        max(64 * 1024, 300 * recipients)
    }

    /// The largest payload in bytes (T9 MessageTooBig): smaller where topics are addressed.
    package var maxPayloadBytes: Int {
        switch self {
        case .topic, .condition: 2_048
        case .token, .tokens, .installation, .installations, .notificationKey: 4_096
        }
    }
}

/// The kinds of target, a bounded set.
package enum TargetKind: String, Sendable, Hashable, CaseIterable {
    case token
    case tokens
    case installation = "fid"
    case installations = "fids"
    case topic
    case condition
    case group
}
