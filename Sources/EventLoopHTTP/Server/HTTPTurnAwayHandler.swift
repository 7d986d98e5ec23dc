import NIOCore

/// Answers a connection there is no room for, and closes it.
final class HTTPTurnAwayHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let response: HTTPServerResponse
    private let date: [UInt8]

    init(response: HTTPServerResponse, date: [UInt8]) {
        self.response = response
        self.date = date
    }

    func channelActive(context: ChannelHandlerContext) {
        let writer = HTTPResponseHeadWriter(
            response: self.response,
            omitsBody: false,
            connection: .close,
            date: self.date
        )
        var bytes = context.channel.allocator.buffer(capacity: writer.headBytes + writer.body.readableBytes)
        writer.writeHead(to: &bytes)
        bytes.writeImmutableBuffer(writer.body)
        context.writeAndFlush(self.wrapOutboundOut(bytes), promise: nil)
        context.close(promise: nil)
    }
}
