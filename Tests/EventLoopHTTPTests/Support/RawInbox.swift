import NIOCore
import Synchronization

/// What a raw connection has received, for a test to wait on.
final class RawInbox: Sendable {
    private struct State {
        var bytes: [UInt8] = []
        var isClosed = false
        var waiters: [(isDone: @Sendable (String) -> Bool, continuation: CheckedContinuation<String, Never>)] = []
    }

    private let state = Mutex(State())

    func append(_ buffer: ByteBuffer) {
        self.update { $0.bytes.append(contentsOf: buffer.readableBytesView) }
    }

    func close() {
        self.update { $0.isClosed = true }
    }

    /// Everything received so far, once it satisfies the condition or the connection has closed.
    func text(where isDone: @escaping @Sendable (String) -> Bool) async -> String {
        await withCheckedContinuation { continuation in
            let ready: String? = self.state.withLock { state in
                let text = String(decoding: state.bytes, as: UTF8.self)
                if state.isClosed || isDone(text) {
                    return text
                }
                state.waiters.append((isDone, continuation))
                return nil
            }
            if let ready {
                continuation.resume(returning: ready)
            }
        }
    }

    private func update(_ change: (inout State) -> Void) {
        let (text, due) = self.state.withLock { state in
            change(&state)
            guard !state.waiters.isEmpty else { return ("", [CheckedContinuation<String, Never>]()) }
            let text = String(decoding: state.bytes, as: UTF8.self)
            let due = state.waiters.filter { state.isClosed || $0.isDone(text) }.map(\.continuation)
            let isClosed = state.isClosed
            state.waiters.removeAll { isClosed || $0.isDone(text) }
            return (text, due)
        }
        for continuation in due {
            continuation.resume(returning: text)
        }
    }
}
