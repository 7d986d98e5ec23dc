/// How the end of a message's body is told (RFC 9112, section 6.3).
enum HTTPBodyFraming: Equatable {
    /// There is no body.
    case none
    /// The body has this many bytes, at least one.
    case length(Int)
    /// The body comes in chunks.
    case chunked
    /// The body ends with the connection; responses only.
    case untilClose
}
