import GatewayCore
import NIOPosix
import Synchronization

/// A state that only threads which may wait work on, one at a time.
final class BlockingState<State: Sendable>: Sendable {
    private let state: Mutex<State>

    init(_ state: State) {
        self.state = Mutex(state)
    }

    /// Works on the state on such a thread.
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
            return try await NIOThreadPool.singleton.runIfActive { try self.state.withLock { try body(&$0) } }
        } catch let error as GatewayError {
            throw error
        } catch {
            throw GatewayError(.storeUnavailable, failure(), cause: error)
        }
    }
}
