/// A v1 upstream's answer that a caller of the v1 facade gets as it came (V-FACADE).
///
/// Indirect, so that results that have none, nearly all, carry a pointer and no more.
package indirect enum V1HandedOn: Sendable, Hashable {
    case answer(V1Response)

    /// The answer.
    package var response: V1Response {
        switch self {
        case .answer(let response): response
        }
    }
}
