import Logging
import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A listening socket that can be closed without resetting a connection.
///
/// To a client, a connection is there as soon as the system has answered its handshake, and its request may be on the
/// way while the connection still waits to be accepted. A socket that is closed outright resets all of those.
struct HTTPListener: Sendable {
    let channel: any Channel
    let eventLoopGroup: any EventLoopGroup
    /// How long a handshake that has begun may take.
    let settlingTime: TimeAmount
    let logger: Logger

    /// Closes the socket once every connection that got through has been accepted and set up.
    ///
    /// From the start of this on, handshakes stay unanswered. A client's system repeats its own after a second and is
    /// refused then, so that no client takes the server for one that serves.
    func close() async {
        guard self.channel.isActive else { return }
        let eventLoop = self.channel.eventLoop
        let isFiltered = try? await eventLoop.submit { HandshakeFilter.attach(to: self.channel) }.get()
        if isFiltered == false {
            self.logger.debug("Connections that come while the listener closes may be reset.")
        }
        try? await eventLoop.scheduleTask(in: self.settlingTime) {}.futureResult.get()
        // Connections are set up by tasks of their loops: those that were there before this one have run when it has.
        for eventLoop in self.eventLoopGroup.makeIterator() {
            try? await eventLoop.submit {}.get()
        }
        try? await self.channel.close()
    }
}

/// A filter on a listening socket that drops what asks for a new connection and lets everything else pass.
///
/// The system then leaves the client's handshake unanswered instead of refusing or accepting it.
enum HandshakeFilter {
    #if os(Linux)
    /// An instruction of a classic BPF program, as `<linux/filter.h>` lays it out.
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

    /// Puts the filter in force until the socket is closed, if the system takes it; on the loop of the channel only.
    static func attach(to listener: any Channel) -> Bool {
        let isAttached = try? listener.pipeline.syncOperations.withUnsafeTransportIfAvailable {
            (socket: NIOBSDSocket.Handle) in
            unsafe Self.instructions.withUnsafeBufferPointer { instructions in
                var program = unsafe Program(count: UInt16(instructions.count), instructions: instructions.baseAddress)
                let size = socklen_t(unsafe MemoryLayout<Program>.size)
                return unsafe setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, size) == 0
            }
        }
        return isAttached == true
    }
    #else
    /// There is none on other systems.
    static func attach(to listener: any Channel) -> Bool { false }
    #endif
}

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
        // Other errors (a reset before the connection was accepted) don't concern the next connection.
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
