import GatewayCore
import Synchronization

/// Admits few scans of the store at a time, so that they never take the processor and the disk from sends.
///
/// Two scans run at once, one of each caller. At most 64 wait in order of arrival, 16 of one caller. Example: while A's
/// first scan runs, A's second waits, and B's first overtakes it.
final class ScanGate: Sendable {
    struct Limits {
        var running = 2
        var waiting = 64
        var waitingOfOneCaller = 16
    }

    private struct Waiter {
        let number: Int
        let caller: String?
        /// Resumed with a refusal, or nil if the scan may run.
        let continuation: CheckedContinuation<GatewayError?, Never>
    }

    private struct State {
        var running: Set<String?> = []
        var waiting: [Waiter] = []
        var lastNumber = 0
        /// Set while the gate is shut, and called when no scan runs.
        var whenIdle: (@Sendable () -> Void)?
        var isShut = false

        /// Removes the waiters that may run now.
        mutating func admit(_ limits: Limits) -> [Waiter] {
            var admitted: [Waiter] = []
            while !self.isShut, self.running.count < limits.running,
                let index = self.waiting.firstIndex(where: { !self.running.contains($0.caller) })
            {
                self.running.insert(self.waiting[index].caller)
                admitted.append(self.waiting.remove(at: index))
            }
            return admitted
        }

        mutating func takeIdleAction() -> (@Sendable () -> Void)? {
            guard self.running.isEmpty else { return nil }
            defer { self.whenIdle = nil }
            return self.whenIdle
        }
    }

    private let limits: Limits
    private let state = Mutex(State())

    init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Runs a scan of a tenant, or of an operator, when its turn comes. Throws `overloaded` if the queue is full.
    func run<T>(for caller: String?, _ scan: () async throws(GatewayError) -> T) async throws(GatewayError) -> T {
        if let refusal = await self.enter(caller) { throw refusal }
        defer { self.change { $0.running.remove(caller) } }
        return try await scan()
    }

    /// Admits no scan until ``open()``. Calls an action when none runs any more.
    func shut(_ action: @escaping @Sendable () -> Void) {
        self.change { state in
            state.isShut = true
            state.whenIdle = action
        }
    }

    func open() {
        self.change { $0.isShut = false }
    }

    var waitingCount: Int { self.state.withLock { $0.waiting.count } }

    private func enter(_ caller: String?) async -> GatewayError? {
        let number = self.state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waiter = Waiter(number: number, caller: caller, continuation: continuation)
                let isQueued = self.change { state in
                    guard state.waiting.count < self.limits.waiting,
                        state.waiting.count(where: { $0.caller == caller }) < self.limits.waitingOfOneCaller
                    else { return false }
                    state.waiting.append(waiter)
                    return true
                }
                if !isQueued {
                    let refusal = GatewayError(.overloaded, "Too many lists are being read; repeat after a while")
                    continuation.resume(returning: refusal)
                } else if Task.isCancelled {
                    // The handler may have run before the waiter was queued.
                    self.cancel(number)
                }
            }
        } onCancel: {
            self.cancel(number)
        }
    }

    private func cancel(_ number: Int) {
        let waiter = self.change { state in
            state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0) }
        }
        waiter?.continuation.resume(returning: GatewayError(.cancelled, "The operation was cancelled"))
    }

    @discardableResult
    private func change<T>(_ body: (inout State) -> T) -> T {
        let (result, admitted, action) = self.state.withLock { state in
            let result = body(&state)
            return (result, state.admit(self.limits), state.takeIdleAction())
        }
        for waiter in admitted { waiter.continuation.resume(returning: nil) }
        action?()
        return result
    }
}
