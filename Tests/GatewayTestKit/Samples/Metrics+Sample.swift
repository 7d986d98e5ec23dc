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
