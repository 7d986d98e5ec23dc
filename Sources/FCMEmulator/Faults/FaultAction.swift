/// What a scripted fault does to a request.
package enum FaultAction: Sendable, Equatable {
    /// The request is handled after a pause, or as soon as the faults are deleted.
    case delay(Duration)
    /// No answer until the faults are deleted; then the request is handled. Ends when the client goes away.
    case hang
    /// The connection is closed with a TCP reset, together with every other stream on it; the request is not handled.
    case reset
    /// This answer instead of handling the request.
    case status(Int, body: String?, headers: [HeaderField])
    /// Status 200 with a body that is no JSON; the request is not handled.
    case garbage
    /// The request is handled, but the connection closes before the whole body of the answer was sent.
    case truncate
    /// The connection is told to go away with GOAWAY and closes once its open streams have ended.
    ///
    /// The request is handled, unless it is refused: then GOAWAY declares it as not processed. With HTTP/1.1 the
    /// connection closes after the answer, or is reset instead of handling a refused request.
    case goAway(isRefused: Bool)
    /// The stream is refused with `REFUSED_STREAM`; the request is not handled. With HTTP/1.1 the connection is reset.
    case refuse

    /// An HTML page for people instead of handling the request, as a load balancer answers.
    ///
    /// - Parameter status: of the answer, such as 404 or 502.
    /// - Returns: the action.
    package static func page(_ status: Int) -> Self {
        let page = Answer.page("Error \(status)", status: status)
        return .status(status, body: page.body, headers: page.headers)
    }

    /// The name used in the control interface.
    var name: String {
        switch self {
        case .delay: "delay"
        case .hang: "hang"
        case .reset: "reset"
        case .status: "status"
        case .garbage: "garbage"
        case .truncate: "truncate"
        case .goAway: "goaway"
        case .refuse: "refuse"
        }
    }
}
