import Tracing

extension Tracing.Span {
    /// Notes that what the span tells of failed, without an answer that says why.
    ///
    /// - Parameter name: what went wrong; one of a bounded set.
    func fail(_ name: String) {
        guard self.isRecording else { return }
        self.updateAttributes { $0.set("error.type", value: .string(name)) }
        self.setStatus(SpanStatus(code: .error, message: name))
        self.recordError(SpanFailure(name: name))
    }
}

/// Why something that a span tells of failed.
private struct SpanFailure: Error {
    /// The name of what went wrong.
    let name: String
}
