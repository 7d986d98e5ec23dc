/// In whose words a refusal under load is told.
enum ShedWording: Int, CaseIterable {
    /// Problem details.
    case rest
    /// The legacy protocol's plain text.
    case legacy
    /// `google.rpc.Status`.
    case v1
    /// The Instance ID API's errors.
    case instanceID
    /// Legacy device groups' errors.
    case groups

    /// The words of the route at a path.
    init(path: [UInt8]) {
        if LegacyFacade.serves(path) {
            self = .legacy
        } else if V1Facade.project(in: path) != nil {
            self = .v1
        } else if GroupFacade.serves(path) {
            self = .groups
        } else {
            switch TopicFacadeRoute(path) {
            case .batch, .info, .relation: self = .instanceID
            case .collection, .subscription: self = .v1
            case nil: self = .rest
            }
        }
    }
}
