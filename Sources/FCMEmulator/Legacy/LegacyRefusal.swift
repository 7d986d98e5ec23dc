/// Why a send request is refused before any recipient is looked at.
///
/// The reasons are for the journal and for the `reason` member of the answer.
enum LegacyRefusal: Error, Equatable {
    /// The body is not JSON: status 400 with text.
    case malformedJSON(reason: String)
    /// A parameter has the wrong name, type or value: status 400, in a form `Error=InvalidParameters`.
    case invalidParameters(reason: String)
    /// An error of T9 with status 200, repeated for each of the results; without results in the shape of T6.
    case failed(LegacyErrorName, results: Int?, reason: String)

    /// The reason alone.
    var reason: String {
        switch self {
        case .malformedJSON(let reason), .invalidParameters(let reason), .failed(_, _, let reason): reason
        }
    }
}
