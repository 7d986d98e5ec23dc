import GatewayCore

extension LimitOverrides {
    /// The policies of a scope; `nil` where the default stays.
    subscript(scope: LimitScope) -> [RatePolicy]? {
        get {
            switch scope {
            case .tenant: self.tenant
            case .device: self.device
            case .deviceCollapsible: self.deviceCollapsible
            case .topic: self.topic
            }
        }
        set {
            switch scope {
            case .tenant: self.tenant = newValue
            case .device: self.device = newValue
            case .deviceCollapsible: self.deviceCollapsible = newValue
            case .topic: self.topic = newValue
            }
        }
    }
}
