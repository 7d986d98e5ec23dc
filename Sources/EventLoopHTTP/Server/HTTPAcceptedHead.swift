/// A request's head after every check, and what it says about its message.
struct HTTPAcceptedHead {
    var head: HTTPRequestHead
    /// How the body ends; never `untilClose`.
    var framing: HTTPBodyFraming
    /// Whether the client speaks HTTP/1.0 and has to be told that the connection stays open.
    var isHTTP10: Bool
    /// Whether the connection may serve another request.
    var keepsAlive: Bool
    /// Whether the client waits for 100 before it sends the body.
    var expectsContinue: Bool
}
