/// What FCM tells of one device.
package struct RegistrationInfo: Sendable, Hashable {
    /// The app's package or bundle; only the Instance ID API tells it, as all but the subscriptions.
    package var application: String?
    /// The app's version.
    package var applicationVersion: String?
    /// The sender id that the device registered with.
    package var authorizedEntity: String?
    /// `ANDROID`, `IOS` or `CHROME`.
    package var platform: String?
    /// The topics that it is subscribed to, in the order of their names.
    package var subscriptions: [TopicSubscription]

    /// What is known of a device.
    package init(
        application: String? = nil,
        applicationVersion: String? = nil,
        authorizedEntity: String? = nil,
        platform: String? = nil,
        subscriptions: [TopicSubscription] = []
    ) {
        self.application = application
        self.applicationVersion = applicationVersion
        self.authorizedEntity = authorizedEntity
        self.platform = platform
        self.subscriptions = subscriptions.sorted { $0.topic.utf8.lexicographicallyPrecedes($1.topic.utf8) }
    }
}
