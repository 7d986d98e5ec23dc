import Dispatch
import GatewayCore
import Synchronization

/// A state that is worked on by a queue of its own, one after the other: work that hangs keeps nobody else waiting.
final class BlockingState<State: Sendable>: Sendable {
    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "fcm-gateway.audit-sink")

    init(_ state: State) {
        self.state = Mutex(state)
    }

    /// Works on the state, on a thread that may wait.
    ///
    /// - Parameters:
    ///   - failure: what an error is called that has no name of its own.
    ///   - body: the work.
    /// - Returns: what the work brought.
    /// - Throws: errors of the gateway as they are, any other as `storeUnavailable`.
    func blocking<T: Sendable>(
        _ failure: @autoclosure () -> String,
        _ body: @escaping @Sendable (inout State) throws -> T
    ) async throws(GatewayError) -> T {
        do {
            return try await withCheckedThrowingContinuation { continuation in
                self.queue.async {
                    continuation.resume(with: Result { try self.state.withLock { try body(&$0) } })
                }
            }
        } catch let error as GatewayError {
            throw error
        } catch {
            throw GatewayError(.storeUnavailable, failure(), cause: error)
        }
    }
}
