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
        /// A connection serves it. Next: `waiting`, `finished`.
        case running(CheckedContinuation<Outcome, Never>, HTTPClientCarrier)
        /// The caller has its result, or will get `cancelled` as soon as it asks.
        case finished
    }

    private struct State {
        var phase = Phase.created
        /// How often a peer has refused it.
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

    /// Whether the caller still waits for its result.
    var isOpen: Bool {
        switch self.state.value.phase {
        case .waiting, .running: true
        case .created, .finished: false
        }
    }

    /// Takes the continuation to resume.
    ///
    /// - Returns: false if the exchange was cancelled before it reached its loop; it is finished then.
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

    /// Notes what carries the exchange.
    ///
    /// - Returns: false if the exchange is finished already.
    func run(on carrier: HTTPClientCarrier) -> Bool {
        guard case .waiting(let continuation, let timeout) = self.state.value.phase else { return false }
        timeout?.cancel()
        self.state.value.phase = .running(continuation, carrier)
        return true
    }

    /// Takes the exchange back to where it waits, since the peer refused it without having looked at it.
    ///
    /// - Returns: false if it has been refused too often, or is finished.
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

    /// What carries the exchange now.
    var carrier: HTTPClientCarrier? {
        guard case .running(_, let carrier) = self.state.value.phase else { return nil }
        return carrier
    }
}
