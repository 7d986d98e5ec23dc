import NIOHTTP2

/// What carries an exchange that is under way.
enum HTTPClientCarrier {
    /// A whole connection.
    case http1(HTTPClientConnection)
    /// One stream of a connection.
    case http2(HTTP2ClientConnection, HTTP2StreamID)

    /// Ends the exchange with an error, and no more of the connection than has to go with it.
    func end(_ code: HTTPClientError.Code) {
        switch self {
        case .http1(let connection): connection.abort(code)
        case .http2(let connection, let stream): connection.cancel(stream, code)
        }
    }
}
