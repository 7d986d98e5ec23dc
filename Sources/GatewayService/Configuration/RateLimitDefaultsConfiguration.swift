/// The rate policies of tenants that have none of their own.
///
/// The defaults keep FCM's documented ceilings in every window.
package struct RateLimitDefaultsConfiguration: Sendable, Equatable {
    /// Messages to one device.
    package var device: [RatePolicyConfiguration]

    /// Messages with a `collapse_key` to one device.
    package var deviceCollapsible: [RatePolicyConfiguration]

    /// Messages to one topic.
    package var topic: [RatePolicyConfiguration]

    /// All messages of one tenant.
    package var tenant: [RatePolicyConfiguration]

    /// Creates the policies; what is not named has its default.
    package init(
        device: [RatePolicyConfiguration] = [
            RatePolicyConfiguration(rate: 180, perS: 60, burst: 60),
            RatePolicyConfiguration(rate: 4_000, perS: 3_600, burst: 1_000),
        ],
        deviceCollapsible: [RatePolicyConfiguration] = [
            RatePolicyConfiguration(rate: 1, perS: 180, burst: 20)
        ],
        topic: [RatePolicyConfiguration] = [
            RatePolicyConfiguration(rate: 900, perS: 60, burst: 100)
        ],
        tenant: [RatePolicyConfiguration] = [
            RatePolicyConfiguration(rate: 9_000, perS: 1, burst: 9_000)
        ]
    ) {
        self.device = device
        self.deviceCollapsible = deviceCollapsible
        self.topic = topic
        self.tenant = tenant
    }
}
