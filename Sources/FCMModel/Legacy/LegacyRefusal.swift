import StrictJSON

/// Why a legacy request is refused before anything is sent.
package enum LegacyRefusal: Error, Sendable, Hashable {
    /// The body is no JSON object that the protocol allows (L-JSON, L-DUPKEY, L-DEPTH): 400 with text.
    case invalidJSON(reason: String)
    /// A field has the wrong type or value: 400 `InvalidParameters`. The reason is for a developer's eyes.
    case invalidParameters(reason: String)
    /// An error of T9 that travels in a 200, in the shape that the target asks for.
    case error(LegacyErrorName, shape: LegacyReply.Shape)
    /// `MessageTooBig`, with the size in bytes.
    case messageTooBig(payloadBytes: Int, shape: LegacyReply.Shape)

    /// What a legacy client gets to see.
    ///
    /// - Parameter multicastID: a positive integer below 2⁵³, used where the shape has one.
    /// - Returns: the answer, in the shape that the request asked for.
    package func reply(multicastID: Int) -> LegacyReply {
        switch self {
        case .invalidJSON(let reason):
            .text(status: 400, "JSON_PARSING_ERROR: \(reason)\n", code: .malformedJSON)
        case .invalidParameters(let reason):
            .invalidParameters(reason: reason)
        case .error(let name, let shape):
            .failure(name, shape: shape, multicastID: multicastID)
        case .messageTooBig(_, let shape):
            .failure(.messageTooBig, shape: shape, multicastID: multicastID)
        }
    }

    /// What a legacy client gets to see that sent a form: one line and status 200, which T4 demands where JSON gets
    /// 400.
    package var formReply: LegacyReply {
        switch self {
        case .invalidJSON, .invalidParameters: .formFailure(.invalidParameters)
        case .error(let name, _): .formFailure(name)
        case .messageTooBig: .formFailure(.messageTooBig)
        }
    }
}
