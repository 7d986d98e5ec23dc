/// The policies in force, by scope.
///
/// Every policy of a scope must admit an event.
package struct LimitPolicies: Sendable, Hashable {
    /// The most policies that one scope may have.
    package static let maxPoliciesPerScope = 4

    /// Policies for everything a tenant sends.
    package var tenant: [RatePolicy]
    /// Policies for one device.
    package var device: [RatePolicy]
    /// Policies for collapsible messages to one device.
    package var deviceCollapsible: [RatePolicy]
    /// Policies for one topic.
    package var topic: [RatePolicy]

    /// Policies; by default those that keep FCM's documented ceilings.
    package init(
        tenant: [RatePolicy] = RatePolicy.tenantDefaults,
        device: [RatePolicy] = RatePolicy.deviceDefaults,
        deviceCollapsible: [RatePolicy] = RatePolicy.deviceCollapsibleDefaults,
        topic: [RatePolicy] = RatePolicy.topicDefaults
    ) {
        self.tenant = tenant
        self.device = device
        self.deviceCollapsible = deviceCollapsible
        self.topic = topic
    }

    /// The policies of a scope.
    package subscript(scope: LimitScope) -> [RatePolicy] {
        switch scope {
        case .tenant: self.tenant
        case .device: self.device
        case .deviceCollapsible: self.deviceCollapsible
        case .topic: self.topic
        }
    }

    /// These policies with a tenant's own in their place, scope by scope.
    package func overridden(by overrides: LimitOverrides) -> LimitPolicies {
        LimitPolicies(
            tenant: overrides.tenant ?? self.tenant,
            device: overrides.device ?? self.device,
            deviceCollapsible: overrides.deviceCollapsible ?? self.deviceCollapsible,
            topic: overrides.topic ?? self.topic
        )
    }
}
