/// A connection that is ready, in the protocol both sides agreed on.
enum HTTPClientTransport {
    case http1(HTTPClientConnection)
    case http2(HTTP2ClientConnection)
}
