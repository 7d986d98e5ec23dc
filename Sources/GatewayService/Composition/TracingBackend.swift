package import ServiceLifecycle
package import Tracing

/// What records the gateway's spans: the one place where an exporter is plugged in.
///
/// An exporter is a tracer for swift-distributed-tracing, such as those of swift-otel, and mostly a service that sends
/// away what it has gathered. To build a gateway with one, add its package to `Package.swift` and have ``installed()``
/// return it; nothing else has to change (`docs/decisions/0031-tracing.md`):
///
/// ```swift
/// static func installed() throws -> TracingBackend {
///     let exporter = try SomeExporter()
///     return TracingBackend(tracer: exporter.tracer, services: [exporter])
/// }
/// ```
package struct TracingBackend: Sendable {
    /// Records spans; `nil` where nobody does, so that callers' traces are only handed on.
    let tracer: (any Tracer)?
    /// What runs as long as the gateway, and ends behind everything that still has spans to end.
    let services: [any Service]

    package init(tracer: (any Tracer)? = nil, services: [any Service] = []) {
        self.tracer = tracer
        self.services = services
    }

    /// The backend of this build: none. Throws what keeps an exporter from working, which ends the start.
    static func installed() throws -> TracingBackend { TracingBackend() }
}
