import NIOHTTP2

/// One exchange on an HTTP/2 connection.
final class HTTP2ClientStream {
    let id: HTTP2StreamID
    let exchange: HTTPClientExchange
    var reader: HTTP2ResponseReader
    /// Whether the caller has its answer; the stream stays until the request is written, or given up, too.
    var isAnswered = false
    /// Bytes counted of the answer so far.
    var heldBytes = 0

    init(id: HTTP2StreamID, exchange: HTTPClientExchange, limits: HTTP2ResponseReader.Limits) {
        self.id = id
        self.exchange = exchange
        self.reader = HTTP2ResponseReader(limits: limits)
    }
}
