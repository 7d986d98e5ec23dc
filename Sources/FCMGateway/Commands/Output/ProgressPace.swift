import GatewayService

/// Decides what is said of the progress of long work, and when.
///
/// Pure: the caller supplies the time and writes the text.
struct ProgressPace: Sendable {
    /// How progress is written.
    enum Style: Sendable, Hashable {
        /// Not at all.
        case silent
        /// Each time on a line of its own.
        case lines
        /// On one line that is written over, and cleared in the end.
        case oneLine

        /// The style for a stream.
        ///
        /// - Parameters:
        ///   - isWanted: what the operator said; nil leaves it to the stream.
        ///   - terminal: the stream.
        init(isWanted: Bool?, on terminal: Terminal) {
            guard isWanted ?? terminal.isTerminal else {
                self = .silent
                return
            }
            self = terminal.rewritesLines ? .oneLine : .lines
        }

        /// How long a line stands before the next may come.
        fileprivate var interval: Duration {
            switch self {
            case .silent, .lines: .seconds(1)
            case .oneLine: .milliseconds(250)
            }
        }
    }

    private static let clearLine = "\r\u{1B}[K"

    private let work: String
    private let style: Style
    private var last: ContinuousClock.Instant?
    private var lineIsOpen = false

    /// Begins.
    ///
    /// - Parameters:
    ///   - work: what is done, as in `audit records`.
    ///   - style: how to write.
    init(_ work: String, style: Style) {
        self.work = work
        self.style = style
    }

    /// What to write when so much is done.
    ///
    /// - Parameters:
    ///   - done: how much.
    ///   - total: how much there is; nil where nobody knows.
    ///   - now: the present moment.
    /// - Returns: The text; nil where something was said just now.
    mutating func text(done: Int, of total: Int?, at now: ContinuousClock.Instant) -> String? {
        let isComplete = done == total
        guard self.style != .silent, isComplete || self.isDue(at: now) else { return nil }
        self.last = now
        let line = "\(self.work): \(Self.count(done, of: total))"
        guard self.style == .oneLine else { return "\(line)\n" }
        self.lineIsOpen = true
        return Self.clearLine + line
    }

    /// What to write before anything else is: clears the line that stands.
    mutating func ending() -> String? {
        guard self.lineIsOpen else { return nil }
        self.lineIsOpen = false
        return Self.clearLine
    }

    private func isDue(at now: ContinuousClock.Instant) -> Bool {
        guard let last = self.last else { return true }
        return last.duration(to: now) >= self.style.interval
    }

    private static func count(_ done: Int, of total: Int?) -> String {
        guard let total else { return "\(done)" }
        // Of nothing, everything is done. What grows meanwhile must not be more than all.
        let percentage = total > 0 ? min(100, Int((Double(done) / Double(total) * 100).rounded(.down))) : 100
        return "\(done) of \(total) (\(percentage) %)"
    }
}
