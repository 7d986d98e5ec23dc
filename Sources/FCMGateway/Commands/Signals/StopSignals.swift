import Synchronization
import UnixSignals

/// The signals that ask a program to end, held back while it does what must not be cut short anywhere.
final class StopSignals: Sendable {
    private let earliest = Mutex<StopSignal?>(nil)

    /// The first signal that came, if any did.
    var first: StopSignal? { self.earliest.withLock(\.self) }

    /// Runs a body that looks at ``first`` wherever it can stop; from then on these signals do no more than show there.
    ///
    /// - Parameter body: What to do.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    static func trapped<Result>(_ body: (StopSignals) async throws -> Result) async throws -> Result {
        let signals = StopSignals()
        let sequence = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await signal in sequence { signals.note(signal.rawValue) }
            }
            defer { group.cancelAll() }
            return try await body(signals)
        }
    }

    private func note(_ number: Int32) {
        self.earliest.withLock { $0 = $0 ?? StopSignal(rawValue: number) }
    }
}
