import NIOCore
import NIOSSL

/// A command in progress, and its caller's continuation.
struct RedisCall: Sendable {
    typealias Outcome = Result<RESPValue, RedisClientError>

    let command: RedisCommand
    let deadline: NIODeadline
    let continuation: CheckedContinuation<Outcome, Never>

    func finish(_ outcome: Outcome) {
        self.continuation.resume(returning: outcome)
    }
}

/// One connection. It carries out the decisions of ``RedisConnectionState`` on its channel.
///
/// It is the last handler of its pipeline, and runs on its event loop. It closes if any command, including those of its
/// own introduction, is unanswered for too long.
final class RedisConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    typealias State = RedisConnectionState<RedisCall>

    private let loop: RedisClient.Loop
    private let introductionTimeout: TimeAmount
    private var state: State
    private var parser: RESPParser
    private(set) var received = ByteBuffer()
    private var context: ChannelHandlerContext?
    private var isOpened = false
    private var isEnded = false
    private var isFlushScheduled = false
    private var wakeUp: (at: NIODeadline, task: Scheduled<Void>)?
    private var introductionDeadline: NIODeadline?

    init(
        loop: RedisClient.Loop,
        introduction: State.Introduction,
        configuration: RedisClient.Configuration
    ) {
        self.loop = loop
        self.introductionTimeout = TimeAmount(configuration.connectTimeout)
        self.state = State(introduction, maxCalls: configuration.maxCallsPerConnection)
        self.parser = RESPParser(limits: configuration.replyLimits)
    }

    // MARK: Calls

    /// Sends a command. Its caller gets the reply, or the error that ends the connection.
    func submit(_ call: RedisCall) {
        guard self.state.submit(call) else {
            call.finish(.failure(RedisClientError(.tooManyCommands, "Too many commands are waiting for replies")))
            return
        }
        self.write(call.command)
        self.watch()
    }

    func close(_ error: RedisClientError) {
        guard !self.isEnded else { return }
        self.isEnded = true
        self.wakeUp?.task.cancel()
        for call in self.state.close() { call.finish(.failure(error)) }
        if let context = self.context {
            // The peer may hang, so the close does not wait until the peer ends TLS.
            if let encryption = try? context.pipeline.syncOperations.context(handlerType: NIOSSLClientHandler.self) {
                encryption.close(promise: nil)
            } else {
                context.close(promise: nil)
            }
        }
        self.loop.ended(self, error)
    }

    // MARK: Events of the channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { self.open() }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        // If the transport never opened, the error of the connection attempt says more than this one would.
        if self.isOpened { self.close(RedisClientError(.connectionClosed, "The connection was closed")) }
        self.context = nil
    }

    func channelActive(context: ChannelHandlerContext) {
        self.open()
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.close(RedisClientError(.connectionClosed, "The server closed the connection"))
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.close(RedisClientError(.connectionClosed, "The connection failed", causedBy: error))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        guard !self.isEnded else { return }
        if self.received.readableBytes == 0 {
            self.received = bytes
        } else {
            // Releases the bytes that have been parsed. Otherwise the buffer would keep growing while every piece
            // from the server ends in the middle of a reply.
            self.received.discardReadBytes()
            self.received.writeBuffer(&bytes)
        }
        do throws(RESPError) {
            while !self.isEnded, let value = try self.parser.next(from: &self.received) {
                self.perform(self.state.received(value))
            }
        } catch {
            self.close(RedisClientError(.invalidReply, "The server's reply is \(error)"))
        }
        if self.received.readableBytes == 0 { self.received = ByteBuffer() }
    }

    private func open() {
        guard !self.isOpened, let context = self.context else { return }
        guard !self.isEnded else {
            // The attempt was given up while the transport was opening.
            context.close(promise: nil)
            return
        }
        self.isOpened = true
        self.introductionDeadline = context.eventLoop.now + self.introductionTimeout
        self.write(self.state.opened())
        self.watch()
    }

    private func perform(_ action: State.Action) {
        switch action {
        case .nothing:
            break
        case .write(let command):
            self.write(command)
        case .ready:
            self.introductionDeadline = nil
            self.loop.ready(self)
        case .discovered(let endpoint):
            self.introductionDeadline = nil
            self.loop.discovered(endpoint, by: self)
        case .deliver(let call, let value):
            call.finish(.success(value))
        case .deliverAndClose(let call, let value, let error):
            call.finish(.success(value))
            self.close(error)
        case .close(let error):
            self.close(error)
        }
    }

    private func write(_ command: RedisCommand) {
        guard let context = self.context else { return }
        context.write(self.wrapOutboundOut(command.bytes), promise: nil)
        guard !self.isFlushScheduled else { return }
        self.isFlushScheduled = true
        // All commands of one turn of the loop leave together.
        context.eventLoop.assumeIsolated()
            .execute {
                self.isFlushScheduled = false
                self.context?.flush()
            }
    }

    // MARK: Timeouts

    /// Schedules a wake-up for the oldest call's deadline.
    ///
    /// Calls with the configured timeout have their deadlines in the order of the calls, so only the oldest call is
    /// watched. A call with another timeout may delay the timeout of later ones. One wake-up is scheduled at a time.
    /// It stays scheduled when calls are answered before it.
    private func watch() {
        guard !self.isEnded, let context = self.context,
            let deadline = self.introductionDeadline ?? self.state.oldestCall?.deadline
        else { return }
        if let wakeUp = self.wakeUp, wakeUp.at <= deadline { return }
        self.wakeUp?.task.cancel()
        let task = context.eventLoop.assumeIsolated()
            .scheduleTask(deadline: deadline) {
                self.wakeUp = nil
                self.wake()
            }
        self.wakeUp = (deadline, task)
    }

    private func wake() {
        guard let context = self.context,
            let deadline = self.introductionDeadline ?? self.state.oldestCall?.deadline
        else { return }
        guard context.eventLoop.now >= deadline else {
            self.watch()
            return
        }
        self.close(RedisClientError(.timedOut, "The server did not reply in time"))
    }
}
