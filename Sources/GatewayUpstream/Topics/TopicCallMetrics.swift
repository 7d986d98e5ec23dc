package import CoreMetrics

/// What is measured of calls about subscriptions, for each API.
package struct TopicCallMetrics: Sendable {
    private let v1: UpstreamMetrics
    private let instanceID: UpstreamMetrics

    /// Metrics made by a factory.
    package init(factory: any MetricsFactory) {
        self.v1 = UpstreamMetrics(label: "v1_topics", factory: factory)
        self.instanceID = UpstreamMetrics(label: "iid", factory: factory)
    }

    /// The metrics of an API.
    subscript(api: TopicAPI) -> UpstreamMetrics {
        switch api {
        case .v1: self.v1
        case .instanceID: self.instanceID
        }
    }
}
