import Tracing

/// Looks the fields of a request's head up for a tracer.
///
/// What is malformed there is hidden from it: then its trace begins here, whatever the tracer would make of it.
struct TraceExtractor: Extractor {
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
