import Tracing

/// A call to an upstream server under way: what its request has to carry, and where its end is told.
package final class UpstreamSpan: Sendable {
    /// What the request has to carry.
    package let fields: [TraceField]
    private let span: (any Tracing.Span)?

    /// A call that is told of a trace, and recorded where there is a span.
    init(fields: [TraceField], span: (any Tracing.Span)? = nil) {
        self.fields = fields
        self.span = span
    }

    /// The server answered; by the conventions of OpenTelemetry, a refusal is an error of its client's.
    package func answered(status: Int) {
        guard let span = self.span else { return }
        defer { span.end() }
        guard span.isRecording else { return }
        span.updateAttributes { attributes in
            attributes.set("http.response.status_code", value: .int64(Int64(status)))
            if status >= 400 { attributes.set("error.type", value: .string(String(status))) }
        }
        if status >= 400 { span.setStatus(SpanStatus(code: .error)) }
    }

    /// No answer came.
    ///
    /// - Parameter name: what went wrong; one of a bounded set.
    package func failed(_ name: String) {
        guard let span = self.span else { return }
        span.fail(name)
        span.end()
    }
}
