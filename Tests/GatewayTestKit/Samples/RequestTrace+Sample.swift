package import GatewayCore

extension RequestTrace {
    /// The id of the sample's trace.
    package static let sampleID = "4bf92f3577b34da6a3ce929d0e0e4736"
    /// The `traceparent` of the sample.
    package static let sampleParent = "00-\(sampleID)-00f067aa0ba902b7-01"

    /// A caller's trace that is handed on.
    package static var sample: RequestTrace? { RequestTracer().handOn(parent: self.sampleParent, state: "a=1,b=2") }

    /// A caller's trace in which a tracer records the request.
    package static func recorded(
        by tracer: RecordingTracer,
        parent: String? = sampleParent,
        baggage: String? = nil
    ) -> RequestTrace? {
        RequestTracer(tracer).begin("POST") { $0 == "traceparent" ? parent : $0 == "baggage" ? baggage : nil }
    }
}
