import CoreMetrics
package import GatewayCore

extension AuditMetrics {
    /// Metrics that nobody looks at.
    package static var unobserved: AuditMetrics { AuditMetrics(factory: NOOPMetricsHandler.instance) }
}

extension SendMetrics {
    /// Metrics that nobody looks at.
    package static var unobserved: SendMetrics { SendMetrics(factory: NOOPMetricsHandler.instance) }
}

extension AuditCheckpointMetrics {
    /// Metrics that nobody looks at.
    package static var unobserved: AuditCheckpointMetrics {
        AuditCheckpointMetrics(factory: NOOPMetricsHandler.instance, hasSink: false, interval: .seconds(10))
    }
}
