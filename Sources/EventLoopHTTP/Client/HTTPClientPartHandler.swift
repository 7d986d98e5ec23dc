import NIOCore
import NIOHTTP1

/// Stands behind the parser: hands the connection what was parsed of the bytes it fed.
final class HTTPClientPartHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    private let connection: HTTPClientConnection

    init(connection: HTTPClientConnection) {
        self.connection = connection
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch self.unwrapInboundIn(data) {
        case .head(let head): self.connection.parsed.head = head
        case .body(let bytes): self.connection.parsed.append(bytes)
        case .end: self.connection.parsed.isComplete = true
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.connection.parsed.error = self.connection.parsed.error ?? error
    }
}
