package import HTTPTypes
package import NIOCore

/// A responder's answer, with its whole body.
package struct HTTPServerResponse: Sendable {
    /// The final status; an informational one is answered as 500.
    package var status: HTTPResponse.Status
    /// The fields, except those that frame the message (`Content-Length`, `Connection` and their kin).
    package var headers: HTTPHeaderLines
    /// The body; not sent in answer to `HEAD`, nor with 204 and 304.
    package var body: ByteBuffer
    /// Whether the connection ends with this answer.
    package var closesConnection: Bool
    /// Whether this is one of the answers that a server must not spend too much of its time on, such as refusals under
    /// overload: when they come too fast, each is held back for a moment, and its connection with it.
    package var isPaced = false
    /// A name for why the answer is what it is, for the responder's own log; not sent.
    package var code: String?

    /// Creates an answer.
    ///
    /// - Parameters:
    ///   - status: the final status.
    ///   - headers: the fields, except those that frame the message.
    ///   - body: the whole body.
    ///   - closesConnection: whether the connection ends with this answer.
    package init(
        status: HTTPResponse.Status,
        headers: HTTPHeaderLines = [:],
        body: ByteBuffer = ByteBuffer(),
        closesConnection: Bool = false
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        self.closesConnection = closesConnection
    }
}
