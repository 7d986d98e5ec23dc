import ArgumentParser
import Foundation
import GatewayService
import Synchronization

/// The option of verbs that may work for long.
struct ProgressOptions: ParsableArguments {
    @Flag(inversion: .prefixedNo, help: "Say on standard error how far the work has got (default: only on a terminal).")
    var progress: Bool?

    /// A reporter of work such as `audit records`.
    func reporter(_ work: String) -> ProgressReporter {
        let terminal = Terminal(.standardError, environment: ProcessInfo.processInfo.environment)
        let pace = ProgressPace(work, style: .init(isWanted: self.progress, on: terminal))
        return ProgressReporter(pace) { try? FileHandle.standardError.write(contentsOf: Data($0.utf8)) }
    }
}

/// Tells people how far long work has got, a few times a second at most.
final class ProgressReporter: Sendable {
    private let pace: Mutex<ProgressPace>
    private let write: @Sendable (String) -> Void

    /// The closure takes the text as it is, without a newline added.
    init(_ pace: ProgressPace, write: @escaping @Sendable (String) -> Void) {
        self.pace = Mutex(pace)
        self.write = write
    }

    func report(_ done: Int, of total: Int?) {
        let text = self.pace.withLock { $0.text(done: done, of: total, at: .now) }
        if let text { self.write(text) }
    }

    func finish() {
        let text = self.pace.withLock { $0.ending() }
        if let text { self.write(text) }
    }
}

/// Decides what is said of the progress of long work, and when; the caller supplies the time and writes the text.
struct ProgressPace: Sendable {
    enum Style: Sendable, Hashable {
        case silent
        /// Each time on a line of its own.
        case lines
        /// On one line that is written over, and cleared in the end.
        case oneLine

        /// The style for a stream, unless the operator decided.
        init(isWanted: Bool?, on terminal: Terminal) {
            guard isWanted ?? terminal.isTerminal else {
                self = .silent
                return
            }
            self = terminal.rewritesLines ? .oneLine : .lines
        }

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

    init(_ work: String, style: Style) {
        self.work = work
        self.style = style
    }

    /// What to write when so much is done; nil where something was said just now.
    mutating func text(done: Int, of total: Int?, at now: ContinuousClock.Instant) -> String? {
        let isDue = self.last.map { $0.duration(to: now) >= self.style.interval } ?? true
        guard self.style != .silent, done == total || isDue else { return nil }
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

    private static func count(_ done: Int, of total: Int?) -> String {
        guard let total else { return "\(done)" }
        // Of nothing, everything is done. What grows meanwhile must not be more than all.
        let percentage = total > 0 ? min(100, Int((Double(done) / Double(total) * 100).rounded(.down))) : 100
        return "\(done) of \(total) (\(percentage) %)"
    }
}
