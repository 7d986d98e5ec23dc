/// Rate limiting: where its state lives, and the policies that hold by default.
///
/// State lives in memory. `limits.redisUrl` is a known key, so that setting it is refused by name.
package struct LimitsConfiguration: Sendable, Equatable {
    /// The policies of tenants that have none of their own.
    package var defaults: RateLimitDefaultsConfiguration

    /// Creates the section; what is not named has its default.
    package init(defaults: RateLimitDefaultsConfiguration = RateLimitDefaultsConfiguration()) {
        self.defaults = defaults
    }
}
