/// Whom a message addresses.
enum MessageTarget: Sendable, Equatable {
    /// `to` with a registration token, a form's `registration_id`, `token` or `fid`; or the key of a device group.
    case device(String)
    /// `registration_ids`.
    case devices([String])
    /// A topic, by its name without prefix.
    case topic(String)
    case condition(ConditionEvaluator)

    /// How many results the legacy answer lists; nil when it has the shape of T6.
    var resultCount: Int? {
        switch self {
        case .device: 1
        case .devices(let tokens): tokens.count
        case .topic, .condition: nil
        }
    }
}

/// A send request that passed every check of its protocol.
struct AcceptedMessage: Sendable, Equatable {
    let target: MessageTarget
    let content: DeliveredMessage
    /// Whether it is only checked: `dry_run`, or `validate_only` of v1.
    let isDryRun: Bool
    /// What is allowed but would not come from a careful caller; recorded in the journal.
    let notes: [String]
}

/// A message as a device receives it.
package struct DeliveredMessage: Sendable, Equatable {
    /// Entries of `data`, values as text.
    package var data: [String: String] = [:]
    /// Members of `notification`, values as text.
    package var notification: [String: String] = [:]
    package var collapseKey: String?
    /// `normal` or `high`, if the sender chose.
    package var priority: String?
    /// Life of the message for a device that is away, in seconds.
    package var timeToLive: Int?
    /// Apple: wake the app.
    package var contentAvailable: Bool?
    /// Apple: let an extension rewrite the notification.
    package var mutableContent: Bool?
    /// Android: the application package the token must belong to.
    package var restrictedPackageName: String?
    /// The members `android`, `apns`, `webpush` and `fcm_options` of a v1 message, each as JSON without blanks and with
    /// its members sorted; nil for a legacy message.
    package var platforms: [String: String]?
}

extension DeliveredMessage: Encodable {
    private enum CodingKeys: String, CodingKey {
        case data, notification, priority, platforms
        case collapseKey = "collapse_key"
        case timeToLive = "time_to_live"
        case contentAvailable = "content_available"
        case mutableContent = "mutable_content"
        case restrictedPackageName = "restricted_package_name"
    }
}
