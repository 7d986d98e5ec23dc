package import Tracing

/// Finds out to which trace a request belongs, and has what the gateway does for it recorded where somebody listens.
///
/// Without a tracer a caller's trace is only handed on, and a request without one costs a look at its head. Which of the
/// two it is is decided when the process starts: asking for the process's tracer at each request would take a lock.
package struct RequestTracer: Sendable {
    private let tracer: (any Tracer)?
    /// Whether upstream servers are told of traces.
    private let propagates: Bool

    package init(_ tracer: (any Tracer)? = nil, propagates: Bool = true) {
        self.tracer = tracer
        self.propagates = propagates
    }

    /// Whether every request is recorded, so that ``begin(_:field:)`` is worth its while.
    package var isRecording: Bool { self.tracer != nil }

    /// Continues the trace that a caller began, by its fields `traceparent` and `tracestate`; nil where the first is
    /// malformed or absent.
    package func handOn(parent: String?, state: String?) -> RequestTrace? {
        guard let parent = parent.flatMap(TraceParent.init) else { return nil }
        guard self.propagates else { return RequestTrace(parent, fields: []) }
        var fields = [TraceField(.parent, parent.text)]
        if let state = state.flatMap(TraceState.init) {
            fields.append(TraceField(.state, state.text))
        }
        return RequestTrace(parent, fields: fields)
    }

    /// Begins the span of a request, in the caller's trace or in a new one.
    ///
    /// Nil where there is neither a tracer nor a caller's trace; `field` looks up a field of the request's head.
    package func begin(_ method: String, field: @escaping @Sendable (String) -> String?) -> RequestTrace? {
        let given = field(TraceField.Name.parent.rawValue)
        guard let tracer = self.tracer else {
            return self.handOn(parent: given, state: field(TraceField.Name.state.rawValue))
        }
        let parent = given.flatMap(TraceParent.init)
        let state = field(TraceField.Name.state.rawValue).flatMap(TraceState.init)
        var context = InstrumentationContext.topLevel
        tracer.extract(field, into: &context, using: TraceExtractor(parent: parent, state: state))
        let span = tracer.startSpan(SpanMethod(method).name, context: context, ofKind: .server)
        return RequestTrace(span, of: tracer, continuing: parent, propagates: self.propagates)
    }
}

/// Looks the fields of a request's head up for a tracer.
///
/// What is malformed there is hidden from it: then its trace begins here, whatever the tracer would make of it.
private struct TraceExtractor: Extractor {
    /// Looks a field up by its name.
    typealias Carrier = @Sendable (String) -> String?

    /// The caller's place in its trace, as far as it is well-formed.
    let parent: TraceParent?
    let state: TraceState?

    func extract(key: String, from carrier: @Sendable (String) -> String?) -> String? {
        switch TraceField.Name(rawValue: key.lowercased()) {
        case .parent: self.parent?.text
        case .state: self.parent == nil ? nil : self.state?.text
        case nil: carrier(key)
        }
    }
}
