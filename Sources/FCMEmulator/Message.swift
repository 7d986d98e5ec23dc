/// The recipients of a message.
enum MessageTarget: Sendable, Equatable {
    /// A registration token in `to`, `registration_id`, `token` or `fid`; or the key of a device group.
    case device(String)
    /// `registration_ids`.
    case devices([String])
    /// A topic, by its name without prefix.
    case topic(String)
    case condition(ConditionEvaluator)

    /// The number of results in the legacy answer; `nil` for the shape of T6.
    var resultCount: Int? {
        switch self {
        case .device: 1
        case .devices(let tokens): tokens.count
        case .topic, .condition: nil
        }
    }
}

/// A send request that passed all checks of its protocol.
struct AcceptedMessage: Sendable, Equatable {
    let target: MessageTarget
    let content: DeliveredMessage
    /// True for a dry run: `dry_run`, or `validate_only` of v1.
    let isDryRun: Bool
    /// Allowed parts that a careful caller would not write; recorded in the journal.
    let notes: [String]
}

/// A message as a device receives it.
package struct DeliveredMessage: Sendable, Equatable {
    /// Entries of `data`, values as text.
    package var data: [String: String] = [:]
    /// Members of `notification`, values as text.
    package var notification: [String: String] = [:]
    package var collapseKey: String?
    /// `normal` or `high`, if the sender set it.
    package var priority: String?
    /// The message's lifetime for an unreachable device, in seconds.
    package var timeToLive: Int?
    /// Apple: wakes the app.
    package var contentAvailable: Bool?
    /// Apple: lets an extension change the notification.
    package var mutableContent: Bool?
    /// Android: the package that the token must belong to.
    package var restrictedPackageName: String?
    /// The members `android`, `apns`, `webpush` and `fcm_options` of a v1 message, each as JSON without blanks and with
    /// sorted members; `nil` for a legacy message.
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
