/// Why the server ended a connection without an answer.
package enum HTTPServerCut: Sendable, Hashable, CaseIterable {
    /// The peer did not read its answer in time.
    case writeStalled
    /// The peer went on sending behind an answer that told it of the connection's end, or behind its own request.
    case flooded
    /// The peer did not finish the TLS handshake in time.
    case handshakeTimeout
    /// The server holds as many connections as it may; over TLS an answer would cost a handshake.
    case tooManyConnections
    /// The server holds as many connections as it may, and this one was idle when another came.
    case evicted
    /// The process has no file descriptor left.
    case outOfDescriptors
}
