/// The APIs by which FCM keeps subscriptions.
package enum TopicAPI: String, Sendable, Hashable, CaseIterable {
    /// HTTP v1's own: one call for each device.
    case v1
    /// The Instance ID API: one call for up to a thousand.
    case instanceID = "iid"
}
