/// What a scripted fault does to a request.
package enum FaultAction: Sendable, Equatable {
    /// The request is handled after a pause, or as soon as the faults are deleted.
    case delay(Duration)
    /// No answer until the faults are deleted; then the request is handled. Ends when the client goes away.
    case hang
    /// The connection is closed with a TCP reset; the request is not handled.
    case reset
    /// This answer instead of handling the request.
    case status(Int, body: String?, headers: [HeaderField])
    /// Status 200 with a body that is no JSON; the request is not handled.
    case garbage
    /// The request is handled, but the connection closes before the whole body of the answer was sent.
    case truncate

    /// The name used in the control interface.
    var name: String {
        switch self {
        case .delay: "delay"
        case .hang: "hang"
        case .reset: "reset"
        case .status: "status"
        case .garbage: "garbage"
        case .truncate: "truncate"
        }
    }
}
