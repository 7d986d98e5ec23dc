/// What is to become of a device's subscription to a topic.
package enum SubscriptionChange: String, Sendable, Hashable, CaseIterable {
    /// It receives what is sent to the topic from now on.
    case subscribe
    /// It no longer does.
    case unsubscribe
}
