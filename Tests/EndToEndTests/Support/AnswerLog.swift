import Synchronization

/// The messages that were answered as accepted.
final class AnswerLog: Sendable {
    struct Answer: Sendable {
        let messageID: String
        let sender: Int
    }

    private struct State {
        var answers: [Answer] = []
        var awaited = Int.max
        var isFinished = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    /// All so far, in the order of their arrival.
    var answers: [Answer] { self.state.withLock { $0.answers } }

    func add(_ messageID: String, of sender: Int) {
        let answer = Answer(messageID: messageID, sender: sender)
        let waiter: CheckedContinuation<Void, Never>? = self.state.withLock { state in
            state.answers.append(answer)
            guard state.answers.count >= state.awaited else { return nil }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Lets who waits go on, because there will be no more.
    func finish() {
        let waiter = self.state.withLock { state in
            defer { (state.isFinished, state.waiter) = (true, nil) }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Waits until there are as many, or will be no more; one caller at a time.
    func wait(for count: Int) async {
        await withCheckedContinuation { continuation in
            let isReached = self.state.withLock { state in
                guard state.answers.count < count, !state.isFinished else { return true }
                (state.awaited, state.waiter) = (count, continuation)
                return false
            }
            if isReached { continuation.resume() }
        }
    }
}
