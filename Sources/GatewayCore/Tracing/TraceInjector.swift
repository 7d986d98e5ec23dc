import Tracing

/// Gathers what upstream servers are told of a trace.
///
/// That is the place in it and no more, whatever else a tracer hands on: `baggage` holds what callers say to each other.
struct TraceInjector: Injector {
    func inject(_ value: String, forKey key: String, into fields: inout [TraceField]) {
        guard let name = TraceField.Name(rawValue: key.lowercased()) else { return }
        fields.append(TraceField(name, value))
    }
}
