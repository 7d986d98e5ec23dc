/// Keeps devices' subscriptions at FCM.
package protocol TopicUpstream: Sendable {
    /// Changes the subscriptions of some devices to one topic and says what became of each.
    ///
    /// Trouble on the way is a result too.
    func change(_ call: SubscriptionCall) async -> SubscriptionResult

    /// Tells what is known of a device.
    func look(up call: RegistrationCall) async -> RegistrationResult
}
