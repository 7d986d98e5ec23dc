import NIOCore
import NIOSSL

/// A connection of a pool: the last handler of its channel's pipeline, in the protocol both sides agreed on.
///
/// A base class, since a pool holds connections of both protocols and calls them for every exchange. Everything happens on
/// the connection's event loop.
class HTTPClientConnection: HTTPPoolMember {
    let core: HTTPClientCore
    let loop: HTTPClientLoop
    let timer: RearmingTimer
    /// Connections of this protocol that there may be on the loop.
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

    /// The timer goes off.
    func wake() { preconditionFailure("A protocol's own.") }

    // MARK: In the pool

    var isUsable: Bool { preconditionFailure("A protocol's own.") }

    /// The tenants of the exchanges that the connection carries, by its places.
    var tenants: [Int] { preconditionFailure("A protocol's own.") }

    /// Sends the request of an exchange; false if the exchange is over already.
    func start(_ exchange: HTTPClientExchange) -> Bool { preconditionFailure("A protocol's own.") }

    /// Ends an exchange, and no more of the connection than has to go with it.
    func cancel(_ exchange: HTTPClientExchange, _ code: HTTPClientError.Code) {
        preconditionFailure("A protocol's own.")
    }

    /// Ends every exchange with an error, and the connection with them.
    func abort(_ code: HTTPClientError.Code, cause: (any Error)? = nil) { preconditionFailure("A protocol's own.") }

    func joined() {}

    func closeIfIdle() { preconditionFailure("A protocol's own.") }
}

extension ChannelHandlerContext {
    /// Closes the transport without asking the peer to agree on the end of TLS.
    func closeAtOnce() {
        if let encryption = try? self.pipeline.syncOperations.context(handlerType: NIOSSLClientHandler.self) {
            encryption.close(promise: nil)
        } else {
            self.close(promise: nil)
        }
    }
}

/// One request on its way through a pool, from the call to its result.
///
/// Its state is touched on its event loop only.
final class HTTPClientExchange: Sendable {
    typealias Outcome = Result<HTTPClientResponse, HTTPClientError>

    private enum Phase {
        /// Not on the loop yet. Next: `waiting`, `finished`.
        case created
        /// Waits for a connection. Next: `running`, `finished`.
        case waiting(CheckedContinuation<Outcome, Never>, timeout: Scheduled<Void>?)
        /// A connection serves it. Next: `waiting`, `finished`.
        case running(CheckedContinuation<Outcome, Never>, HTTPClientConnection)
        /// The caller has its result, or will get `cancelled` as soon as it asks.
        case finished
    }

    private struct State {
        var phase = Phase.created
        var refusals = 0
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

    /// Takes the continuation to resume; false if the exchange was cancelled before it reached its loop.
    func begin(_ continuation: CheckedContinuation<Outcome, Never>) -> Bool {
        guard case .created = self.state.value.phase else {
            continuation.resume(returning: .failure(HTTPClientError(code: .cancelled, requestSent: false)))
            return false
        }
        self.state.value.phase = .waiting(continuation, timeout: nil)
        return true
    }

    /// Holds the timer of an exchange that has to wait for a connection.
    func setTimeout(_ timeout: Scheduled<Void>) {
        guard case .waiting(let continuation, nil) = self.state.value.phase else {
            timeout.cancel()
            return
        }
        self.state.value.phase = .waiting(continuation, timeout: timeout)
    }

    /// Notes the connection that serves the exchange; false if the exchange is finished already.
    func run(on connection: HTTPClientConnection) -> Bool {
        guard case .waiting(let continuation, let timeout) = self.state.value.phase else { return false }
        timeout?.cancel()
        self.state.value.phase = .running(continuation, connection)
        return true
    }

    /// Takes the exchange back to where it waits, since the peer refused it without having looked at it; false if it has
    /// been refused too often, or is finished.
    func waitAgain(maxRefusals: Int) -> Bool {
        guard case .running(let continuation, _) = self.state.value.phase, self.state.value.refusals < maxRefusals
        else {
            return false
        }
        self.state.value.refusals += 1
        self.state.value.phase = .waiting(continuation, timeout: nil)
        return true
    }

    /// Resumes the caller; the first result counts.
    func finish(_ outcome: Outcome) {
        switch self.state.value.phase {
        case .created:
            self.state.value.phase = .finished
        case .waiting(let continuation, let timeout):
            timeout?.cancel()
            self.state.value.phase = .finished
            continuation.resume(returning: outcome)
        case .running(let continuation, _):
            self.state.value.phase = .finished
            continuation.resume(returning: outcome)
        case .finished:
            break
        }
    }
}
