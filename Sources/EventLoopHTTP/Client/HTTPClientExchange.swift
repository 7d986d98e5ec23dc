import NIOCore

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
        /// A connection serves it. Next: `finished`.
        case running(CheckedContinuation<Outcome, Never>, HTTPClientConnection)
        /// The caller has its result, or will get `cancelled` as soon as it asks.
        case finished
    }

    let request: HTTPClientRequest
    let deadline: NIODeadline
    private let phase: NIOLoopBoundBox<Phase>

    init(request: HTTPClientRequest, deadline: NIODeadline, eventLoop: any EventLoop) {
        self.request = request
        self.deadline = deadline
        self.phase = .makeBoxSendingValue(.created, eventLoop: eventLoop)
    }

    /// Whether the caller still waits for its result.
    var isOpen: Bool {
        switch self.phase.value {
        case .waiting, .running: true
        case .created, .finished: false
        }
    }

    /// Takes the continuation to resume.
    ///
    /// - Returns: false if the exchange was cancelled before it reached its loop; it is finished then.
    func begin(_ continuation: CheckedContinuation<Outcome, Never>) -> Bool {
        guard case .created = self.phase.value else {
            continuation.resume(returning: .failure(HTTPClientError(code: .cancelled, requestSent: false)))
            return false
        }
        self.phase.value = .waiting(continuation, timeout: nil)
        return true
    }

    /// Holds the timer of an exchange that has to wait for a connection.
    func setTimeout(_ timeout: Scheduled<Void>) {
        guard case .waiting(let continuation, nil) = self.phase.value else {
            timeout.cancel()
            return
        }
        self.phase.value = .waiting(continuation, timeout: timeout)
    }

    /// Notes the connection that serves the exchange.
    ///
    /// - Returns: false if the exchange is finished already.
    func run(on connection: HTTPClientConnection) -> Bool {
        guard case .waiting(let continuation, let timeout) = self.phase.value else { return false }
        timeout?.cancel()
        self.phase.value = .running(continuation, connection)
        return true
    }

    /// Resumes the caller; the first result counts.
    func finish(_ outcome: Outcome) {
        switch self.phase.value {
        case .created:
            self.phase.value = .finished
        case .waiting(let continuation, let timeout):
            timeout?.cancel()
            self.phase.value = .finished
            continuation.resume(returning: outcome)
        case .running(let continuation, _):
            self.phase.value = .finished
            continuation.resume(returning: outcome)
        case .finished:
            break
        }
    }

    /// The connection that serves the exchange now.
    var connection: HTTPClientConnection? {
        guard case .running(_, let connection) = self.phase.value else { return nil }
        return connection
    }
}
