import NIOCore
import NIOSSL

/// A connection of a pool: the last handler of its channel's pipeline, in the negotiated protocol.
///
/// A base class, because a pool holds connections of both protocols and calls them for every exchange. All methods run
/// on the connection's event loop.
class HTTPClientConnection: HTTPPoolMember {
    let core: HTTPClientCore
    let loop: HTTPClientLoop
    let timer: RearmingTimer
    /// The maximum of connections of this protocol on the loop.
    let maxConnections: Int
    var places: HTTPPoolPlaces
    final var context: ChannelHandlerContext?

    init(loop: HTTPClientLoop, places: Int, maxConnections: Int) {
        self.core = loop.core
        self.loop = loop
        self.timer = RearmingTimer(eventLoop: loop.eventLoop)
        self.maxConnections = maxConnections
        self.places = HTTPPoolPlaces(limit: places)
    }

    // MARK: Events of the channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        self.timer.start { [unowned self] in self.wake() }
    }

    final func handlerRemoved(context: ChannelHandlerContext) {
        self.transportClosed()
        self.context = nil
    }

    final func channelInactive(context: ChannelHandlerContext) {
        self.transportClosed()
        context.fireChannelInactive()
    }

    func transportClosed() { self.abort(.connectionClosed) }

    /// The timer has expired.
    func wake() { preconditionFailure("Override this.") }

    // MARK: In the pool

    var isUsable: Bool { preconditionFailure("Override this.") }

    /// The tenants of the connection's exchanges, one for each occupied place.
    var tenants: [Int] { preconditionFailure("Override this.") }

    /// Sends the request of an exchange. Returns false if the exchange has ended.
    func start(_ exchange: HTTPClientExchange) -> Bool { preconditionFailure("Override this.") }

    /// Ends an exchange, and closes the connection only if the protocol requires it.
    func cancel(_ exchange: HTTPClientExchange, _ code: HTTPClientError.Code) {
        preconditionFailure("Override this.")
    }

    /// Ends all exchanges with an error, and closes the connection.
    func abort(_ code: HTTPClientError.Code, cause: (any Error)? = nil) { preconditionFailure("Override this.") }

    func joined() {}

    func closeIfIdle() { preconditionFailure("Override this.") }
}

extension ChannelHandlerContext {
    /// Closes the transport without waiting for the peer's end of TLS.
    func closeAtOnce() {
        if let encryption = try? self.pipeline.syncOperations.context(handlerType: NIOSSLClientHandler.self) {
            encryption.close(promise: nil)
        } else {
            self.close(promise: nil)
        }
    }
}

/// One request from its call to its result.
///
/// Its state is used only on its event loop.
final class HTTPClientExchange: Sendable {
    typealias Outcome = Result<HTTPClientResponse, HTTPClientError>

    private enum Phase {
        /// Not on the loop yet. Next: `waiting`, `finished`.
        case created
        /// Waits for a connection. Next: `running`, `finished`.
        case waiting(CheckedContinuation<Outcome, Never>, timeout: Scheduled<Void>?)
        /// A connection serves it. Next: `waiting`, `finished`.
        case running(CheckedContinuation<Outcome, Never>, HTTPClientConnection)
        /// The caller has its result, or gets `cancelled` from ``begin(_:)``.
        case finished
    }

    /// Two functions take the old phase out, because a copy would retain its parts. They may cancel a timer meanwhile,
    /// which calls nothing back.
    private struct State {
        private(set) var phase = Phase.created
        private var refusals = 0

        mutating func begin(_ continuation: CheckedContinuation<Outcome, Never>) -> Bool {
            guard case .created = self.phase else { return false }
            self.phase = .waiting(continuation, timeout: nil)
            return true
        }

        mutating func setTimeout(_ timeout: Scheduled<Void>) -> Bool {
            guard case .waiting(let continuation, nil) = self.phase else { return false }
            self.phase = .waiting(continuation, timeout: timeout)
            return true
        }

        mutating func run(on connection: HTTPClientConnection) -> Bool {
            switch exchange(&self.phase, with: .finished) {
            case .waiting(let continuation, let timeout):
                timeout?.cancel()
                self.phase = .running(continuation, connection)
                return true
            case let other:
                self.phase = other
                return false
            }
        }

        mutating func waitAgain(maxRefusals: Int) -> Bool {
            guard case .running(let continuation, _) = self.phase, self.refusals < maxRefusals else { return false }
            self.refusals += 1
            self.phase = .waiting(continuation, timeout: nil)
            return true
        }

        /// Returns the continuation of a caller that waits for its result.
        mutating func finish() -> CheckedContinuation<Outcome, Never>? {
            switch exchange(&self.phase, with: .finished) {
            case .created, .finished:
                return nil
            case .waiting(let continuation, let timeout):
                timeout?.cancel()
                return continuation
            case .running(let continuation, _):
                return continuation
            }
        }
    }

    let request: HTTPClientRequest
    let deadline: NIODeadline
    private let state: NIOLoopBoundBox<State>

    init(request: HTTPClientRequest, deadline: NIODeadline, eventLoop: any EventLoop) {
        self.request = request
        self.deadline = deadline
        self.state = .makeBoxSendingValue(State(), eventLoop: eventLoop)
    }

    var connection: HTTPClientConnection? {
        guard case .running(_, let connection) = self.state.value.phase else { return nil }
        return connection
    }

    /// Stores the continuation. Returns false, and resumes it, if the exchange was cancelled before it reached its
    /// loop.
    func begin(_ continuation: CheckedContinuation<Outcome, Never>) -> Bool {
        if self.state.value.begin(continuation) { return true }
        continuation.resume(returning: .failure(HTTPClientError(code: .cancelled, requestSent: false)))
        return false
    }

    /// Stores the timer of an exchange that waits for a connection.
    func setTimeout(_ timeout: Scheduled<Void>) { if !self.state.value.setTimeout(timeout) { timeout.cancel() } }

    /// Records the connection that serves the exchange. Returns false if the exchange has finished.
    func run(on connection: HTTPClientConnection) -> Bool { self.state.value.run(on: connection) }

    /// Makes the exchange wait again after a peer refused it without processing it. Returns false if it has been
    /// refused too often, or has finished.
    func waitAgain(maxRefusals: Int) -> Bool { self.state.value.waitAgain(maxRefusals: maxRefusals) }

    /// Resumes the caller. Only the first result counts.
    func finish(_ outcome: Outcome) { self.state.value.finish()?.resume(returning: outcome) }
}
