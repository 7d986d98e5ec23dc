import Logging
import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A listening socket that can be closed without resetting a connection.
///
/// For a client, a connection exists when the system has answered its handshake. Its request may be in transit while
/// the connection still waits to be accepted. Closing the socket outright resets all such connections.
struct HTTPListener: Sendable {
    let channel: any Channel
    let eventLoopGroup: any EventLoopGroup
    /// The longest duration of a handshake that has begun.
    let settlingTime: TimeAmount
    let logger: Logger

    /// Closes the socket after every established connection has been accepted and set up.
    ///
    /// From the start of this call, new handshakes are not answered. A client's system repeats its handshake after a
    /// second, and is then refused. So no client believes that the server still serves new connections.
    func close() async {
        guard self.channel.isActive else { return }
        let eventLoop = self.channel.eventLoop
        let isFiltered = try? await eventLoop.submit { HandshakeFilter.attach(to: self.channel) }.get()
        if isFiltered == false {
            self.logger.debug("Connections that arrive while the listener closes may be reset.")
        }
        try? await eventLoop.scheduleTask(in: self.settlingTime) {}.futureResult.get()
        // Loops set up connections in tasks. Each loop runs the empty task below after all earlier ones.
        for eventLoop in self.eventLoopGroup.makeIterator() {
            try? await eventLoop.submit {}.get()
        }
        try? await self.channel.close()
    }
}

extension HTTPListener {
    /// A filter on a listening socket that drops requests for new connections and passes everything else.
    ///
    /// The system then leaves the client's handshake unanswered, instead of refusing or accepting it.
    enum HandshakeFilter {
        #if os(Linux)
        /// An instruction of a classic BPF program, in the layout of `<linux/filter.h>`.
        private struct Instruction {
            var code: UInt16
            var jumpIfTrue: UInt8 = 0
            var jumpIfFalse: UInt8 = 0
            var operand: UInt32
        }

        @unsafe
        private struct Program {
            var count: UInt16
            var instructions: UnsafePointer<Instruction>?
        }

        /// The program reads a segment from TCP's header on.
        private static let instructions = [
            // Load the byte with the flags.
            Instruction(code: 0x30, operand: 13),
            // Without SYN, skip one.
            Instruction(code: 0x45, jumpIfFalse: 1, operand: 0x02),
            // Drop it.
            Instruction(code: 0x06, operand: 0),
            // Let it pass, all of it.
            Instruction(code: 0x06, operand: .max),
        ]

        /// Installs the filter until the socket is closed. Returns false if the system refuses it. Runs on the
        /// channel's loop.
        static func attach(to listener: any Channel) -> Bool {
            let isAttached = try? listener.pipeline.syncOperations.withUnsafeTransportIfAvailable {
                (socket: NIOBSDSocket.Handle) in
                unsafe Self.instructions.withUnsafeBufferPointer { instructions in
                    var program = unsafe Program(
                        count: UInt16(instructions.count),
                        instructions: instructions.baseAddress
                    )
                    let size = socklen_t(unsafe MemoryLayout<Program>.size)
                    return unsafe setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, size) == 0
                }
            }
            return isAttached == true
        }
        #else
        /// Other systems have no such filter.
        static func attach(to listener: any Channel) -> Bool { false }
        #endif
    }
}

/// Keeps the listener from spinning when the process has no free file descriptor.
///
/// A connection that can't be accepted stays pending, and the listener is notified of it again and again. This handler
/// keeps one descriptor in reserve. It closes the reserve, accepts the pending connection, closes that, and opens the
/// reserve again.
final class HTTPDescriptorReserveHandler: ChannelInboundHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel

    /// ENFILE and EMFILE, on Linux as on Darwin: the system's or the process's table of descriptors is full.
    private static let tableIsFull: [CInt] = [23, 24]
    private static let logPause = TimeAmount.seconds(60)

    private let onClose: @Sendable (HTTPServerCloseReason) -> Void
    private let logger: Logger
    private var reserve: NIOFileHandle?
    private var isShort = false
    private var isListening = false
    private var quietUntil = NIODeadline.distantPast

    init(onClose: @escaping @Sendable (HTTPServerCloseReason) -> Void, logger: Logger) {
        self.onClose = onClose
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
        // Other errors, such as a reset before the connection was accepted, don't concern the next connection.
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
        self.onClose(.outOfDescriptors)
        self.unwrapInboundIn(data).close().hop(to: context.eventLoop).assumeIsolated()
            .whenComplete { _ in
                self.takeReserve()
            }
    }

    /// Logs a shortage once a minute, regardless of the number of connections.
    private func log(at now: NIODeadline) {
        guard now >= self.quietUntil else { return }
        self.quietUntil = now + Self.logPause
        self.logger.warning("No file descriptor is left; new connections are turned away.")
    }

    private func takeReserve() {
        guard self.isListening, self.reserve == nil else { return }
        // Opening the null device does not block. NIO's label deprecates every opening by path.
        guard let reserve = try? NIOFileHandle(_deprecatedPath: "/dev/null") else { return }
        self.reserve = reserve
        self.isShort = false
    }

    private func giveReserve() {
        try? self.reserve?.close()
        self.reserve = nil
    }
}
