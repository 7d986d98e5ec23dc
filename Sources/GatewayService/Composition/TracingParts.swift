import GatewayCore
import GatewayTracing
import Logging
import NIOSSL
import ServiceLifecycle

/// The configured recording of spans. Without a receiver, the gateway only passes on callers' traces.
struct TracingParts: Sendable {
    /// The time to export the remaining spans at the end, after all other parts.
    private static let flushLimit = Duration.seconds(2)

    let tracer: RequestTracer
    private let configuration: GatewayConfiguration.Tracing
    private let queue: SpanQueue?

    init(_ configuration: GatewayConfiguration.Tracing, metrics: GatewayMetrics) {
        // The series exist even without a receiver. Their value is then 0.
        let spans = SpanQueue(metrics: metrics)
        self.queue = configuration.otlpEndpoint.isEmpty ? nil : spans
        let recorder = self.queue.map { RequestTracer.Recorder(sampling: configuration.sampleRatio, record: $0.add) }
        self.tracer = RequestTracer(recorder, propagates: configuration.propagation == .all)
        self.configuration = configuration
    }

    /// The services that export spans. They end after every part that ends spans.
    func services(instance: String?, logger: Logger) throws -> [NamedService] {
        guard let queue = self.queue else { return [] }
        let (endpoint, fields) = (self.configuration.otlpEndpoint, self.configuration.otlpHeaders?.revealed)
        let exporter = try SpanExporter(
            queue,
            to: try OTLPReceiver(endpoint, fields: fields),
            as: OTLPReceiver.Resource(version: GatewayVersion.current, instance: instance),
            tls: try self.configuration.tls(),
            logger: logger
        )
        let bounded = BoundedService(service: exporter, time: BoundedService.Time(limit: Self.flushLimit))
        return [NamedService("span exporter", bounded)]
    }
}

extension GatewayConfiguration.Tracing {
    /// TLS that trusts the file's authorities in addition to the system's. `nil` without a file.
    func tls() throws(ConfigurationProblems) -> TLSConfiguration? {
        guard let file = self.caFile else { return nil }
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.additionalTrustRoots = [.certificates(try PEMFile.certificates(in: file, key: "tracing.caFile"))]
        return tls
    }
}
