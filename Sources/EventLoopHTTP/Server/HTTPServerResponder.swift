/// Answers the requests a server received.
package protocol HTTPServerResponder: Sendable {
    /// Answers one request.
    ///
    /// Runs on the connection's event loop and must not block it. The task is cancelled when the connection closes.
    ///
    /// - Parameter request: the request with its whole body.
    /// - Returns: the answer.
    func respond(to request: HTTPServerRequest) async -> HTTPServerResponse
}
