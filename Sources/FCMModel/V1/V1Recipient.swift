/// The target of one call: v1 has no lists (http-v1, section 3).
package enum V1Recipient: Sendable, Hashable {
    /// A registration token, or the notification key of a device group.
    case token(String)
    /// A Firebase installation id.
    case installation(String)
    /// All subscribers of a topic.
    case topic(TopicName)
    /// All devices whose subscriptions satisfy an expression.
    case condition(TopicCondition)

    /// The member of the message that names the target.
    var key: StaticString {
        switch self {
        case .token: "token"
        case .installation: "fid"
        case .topic: "topic"
        case .condition: "condition"
        }
    }

    /// The member's value; conditions are canonical.
    var text: String {
        switch self {
        case .token(let text), .installation(let text): text
        case .topic(let topic): topic.text
        case .condition(let condition): condition.canonical
        }
    }
}
