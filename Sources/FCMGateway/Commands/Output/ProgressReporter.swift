import Synchronization

/// Tells people how far long work has got, a few times a second at most.
final class ProgressReporter: Sendable {
    private let pace: Mutex<ProgressPace>
    private let write: @Sendable (String) -> Void

    /// Creates a reporter.
    ///
    /// - Parameters:
    ///   - pace: Decides what is written when.
    ///   - write: Takes the text as it is, without a newline added.
    init(_ pace: ProgressPace, write: @escaping @Sendable (String) -> Void) {
        self.pace = Mutex(pace)
        self.write = write
    }

    /// Takes note of progress.
    ///
    /// - Parameters:
    ///   - done: How much is done.
    ///   - total: How much there is; nil where nobody knows.
    func report(_ done: Int, of total: Int?) {
        let text = self.pace.withLock { $0.text(done: done, of: total, at: .now) }
        if let text { self.write(text) }
    }

    /// Leaves the line to whatever is written next.
    func finish() {
        let text = self.pace.withLock { $0.ending() }
        if let text { self.write(text) }
    }
}
