import Logging
import NIOCore

/// Keeps the listener from spinning when the process runs out of file descriptors.
///
/// A connection that cannot be accepted stays pending, and the listener is told of it again at once, for as long as no
/// descriptor is free. This handler holds one in reserve: it is given up to accept the pending connection, which is
/// closed straight away, and taken back.
final class HTTPDescriptorReserveHandler: ChannelInboundHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel

    /// ENFILE and EMFILE, on Linux as on Darwin: the system's or the process's table of descriptors is full.
    private static let tableIsFull: [CInt] = [23, 24]
    /// How long nothing more is logged about a shortage that was.
    private static let logPause = TimeAmount.seconds(60)

    private let onCut: @Sendable (HTTPServerCut) -> Void
    private let logger: Logger
    private var reserve: NIOFileHandle?
    private var isShort = false
    private var isListening = false
    private var quietUntil = NIODeadline.distantPast

    init(onCut: @escaping @Sendable (HTTPServerCut) -> Void, logger: Logger) {
        self.onCut = onCut
        self.logger = logger
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.isListening = true
        self.takeReserve()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.isListening = false
        self.giveReserve()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError else {
            context.fireErrorCaught(error)
            return
        }
        // Whatever else may happen to a single connection (a reset before it was accepted) does not concern the next.
        guard Self.tableIsFull.contains(error.errnoCode) else { return }
        self.isShort = true
        self.giveReserve()
        self.log(at: context.eventLoop.now)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.takeReserve()
        guard self.isShort else {
            context.fireChannelRead(data)
            return
        }
        self.onCut(.outOfDescriptors)
        self.unwrapInboundIn(data).close().hop(to: context.eventLoop).assumeIsolated()
            .whenComplete { _ in
                self.takeReserve()
            }
    }

    /// One line for a shortage, however many connections it turns away.
    private func log(at now: NIODeadline) {
        guard now >= self.quietUntil else { return }
        self.quietUntil = now + Self.logPause
        self.logger.warning("No file descriptor is left; new connections are turned away.")
    }

    private func takeReserve() {
        guard self.isListening, self.reserve == nil else { return }
        // Opening the null device does not block; NIO names every opening by path this way.
        guard let reserve = try? NIOFileHandle(_deprecatedPath: "/dev/null") else { return }
        self.reserve = reserve
        self.isShort = false
    }

    private func giveReserve() {
        try? self.reserve?.close()
        self.reserve = nil
    }
}
