/// A field of a request's head that carries a trace on.
package struct TraceField: Sendable, Hashable {
    /// The fields' names, as W3C Trace Context writes them.
    package enum Name: String, Sendable, Hashable {
        /// The place in the trace.
        case parent = "traceparent"
        /// What tracing systems keep of the trace for themselves.
        case state = "tracestate"
    }

    /// The field's name.
    package let name: Name
    /// Its value.
    package let value: String

    /// A field.
    package init(_ name: Name, _ value: String) {
        self.name = name
        self.value = value
    }
}
