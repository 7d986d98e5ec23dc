/// What is recorded of the request behind an action.
package struct RequestOrigin: Sendable {
    /// The HTTP method.
    package var method: String
    /// The request's id.
    package var requestID: String
    /// The trace that it belongs to, if it belongs to one.
    package var trace: RequestTrace?

    /// An origin.
    package init(method: String, requestID: String, trace: RequestTrace? = nil) {
        self.method = method
        self.requestID = requestID
        self.trace = trace
    }

    /// The trace's id.
    package var traceID: String? { self.trace?.traceID }
}
