/// A tenant's own policies; an absent scope keeps the default.
package struct LimitOverrides: Sendable, Hashable {
    /// Policies for everything the tenant sends.
    package var tenant: [RatePolicy]?
    /// Policies for one device.
    package var device: [RatePolicy]?
    /// Policies for collapsible messages to one device.
    package var deviceCollapsible: [RatePolicy]?
    /// Policies for one topic.
    package var topic: [RatePolicy]?

    /// The scopes that have policies here.
    package var scopes: Set<LimitScope> {
        var scopes: Set<LimitScope> = []
        if self.tenant != nil { scopes.insert(.tenant) }
        if self.device != nil { scopes.insert(.device) }
        if self.deviceCollapsible != nil { scopes.insert(.deviceCollapsible) }
        if self.topic != nil { scopes.insert(.topic) }
        return scopes
    }

    /// Overrides; by default none.
    package init(
        tenant: [RatePolicy]? = nil,
        device: [RatePolicy]? = nil,
        deviceCollapsible: [RatePolicy]? = nil,
        topic: [RatePolicy]? = nil
    ) {
        self.tenant = tenant
        self.device = device
        self.deviceCollapsible = deviceCollapsible
        self.topic = topic
    }
}
