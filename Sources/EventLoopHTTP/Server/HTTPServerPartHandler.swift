import NIOCore
import NIOHTTP1

/// Stands behind the parser: hands the connection what was parsed of the bytes it fed.
final class HTTPServerPartHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart

    private let connection: HTTPServerConnection

    init(connection: HTTPServerConnection) {
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
        // The parser reports an unknown version twice; the first report is as good as the second.
        self.connection.parsed.error = self.connection.parsed.error ?? error
    }
}
