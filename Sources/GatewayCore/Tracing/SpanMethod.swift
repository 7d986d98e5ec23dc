/// A request's method as spans tell of it by the HTTP conventions of OpenTelemetry.
struct SpanMethod: Sendable, Hashable {
    /// Those that HTTP has.
    private static let known: Set<String> = [
        "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
    ]

    /// What stands for the method in names of spans.
    let name: String
    /// The value of `http.request.method`.
    let attribute: String

    /// A method as it was sent, which may be any text.
    init(_ method: String) {
        let isKnown = Self.known.contains(method)
        self.name = isKnown ? method : "HTTP"
        self.attribute = isKnown ? method : "_OTHER"
    }

    /// The name of a span; without a template of the path, that is the method alone.
    func name(at route: String?) -> String {
        route.map { "\(self.name) \($0)" } ?? self.name
    }
}
