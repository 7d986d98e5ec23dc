/// A message as a device receives it.
package struct DeliveredMessage: Sendable, Equatable {
    /// Entries of `data`, values as text.
    package var data: [String: String]

    /// Members of `notification`, values as text.
    package var notification: [String: String]

    /// The collapse key.
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

    /// Creates a message from what a request said; what it left out stays nil or empty.
    package init(
        data: [String: String] = [:],
        notification: [String: String] = [:],
        collapseKey: String? = nil,
        priority: String? = nil,
        timeToLive: Int? = nil,
        contentAvailable: Bool? = nil,
        mutableContent: Bool? = nil,
        restrictedPackageName: String? = nil,
        platforms: [String: String]? = nil
    ) {
        self.data = data
        self.notification = notification
        self.collapseKey = collapseKey
        self.priority = priority
        self.timeToLive = timeToLive
        self.contentAvailable = contentAvailable
        self.mutableContent = mutableContent
        self.restrictedPackageName = restrictedPackageName
        self.platforms = platforms
    }
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
