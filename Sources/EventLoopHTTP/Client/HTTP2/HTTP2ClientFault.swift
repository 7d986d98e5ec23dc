import NIOHTTP2

/// What lies beneath an exchange that failed on an HTTP/2 connection, for the log.
enum HTTP2ClientFault: Error, Equatable {
    /// The peer ended the stream with this code.
    case reset(HTTP2ErrorCode)
    /// The stream broke the protocol, and was ended from here with this code.
    case violation(HTTP2ErrorCode)
    /// Every connection refused the exchange.
    case refused
    /// A ping stayed unanswered.
    case silent
    /// The peer speaks none of the protocols offered to it.
    case noProtocol
}
