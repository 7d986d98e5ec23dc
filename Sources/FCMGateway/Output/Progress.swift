import ArgumentParser
import Foundation
import GatewayService
import Synchronization

/// The option of verbs that may take long.
struct ProgressOptions: ParsableArguments {
    @Flag(inversion: .prefixedNo, help: "Report progress on standard error (default: only on a terminal).")
    var progress: Bool?

    /// Creates a reporter of work such as `audit records`.
    func reporter(_ work: String) -> ProgressReporter {
        let terminal = Terminal(.standardError, environment: ProcessInfo.processInfo.environment)
        let pace = ProgressReporter.Pace(work, style: .init(isWanted: self.progress, on: terminal))
        return ProgressReporter(pace) { try? FileHandle.standardError.write(contentsOf: Data($0.utf8)) }
    }
}

/// Reports the progress of long work, a few times per second at most.
final class ProgressReporter: Sendable {
    private let pace: Mutex<Pace>
    private let write: @Sendable (String) -> Void

    /// Creates a reporter. The closure writes a text without adding a newline.
    init(_ pace: Pace, write: @escaping @Sendable (String) -> Void) {
        self.pace = Mutex(pace)
        self.write = write
    }

    /// Reports a state of the work. The note follows the counts.
    func report(_ done: Int, of total: Int?, note: String = "") {
        let text = self.pace.withLock { $0.text(done: done, of: total, note: note, at: .now) }
        if let text { self.write(text) }
    }

    func finish() {
        let text = self.pace.withLock { $0.ending() }
        if let text { self.write(text) }
    }
}

extension ProgressReporter {
    /// Decides the text and time of progress reports. The caller supplies the time and writes the text.
    struct Pace: Sendable {
        enum Style: Sendable, Hashable {
            case silent
            /// Each report on its own line.
            case lines
            /// All reports on one line, which is overwritten and finally cleared.
            case oneLine

            /// Chooses the style. If `isWanted` is `nil`, reports are written only to a terminal.
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

        /// Returns the text for the present progress, or `nil` if the last report is too recent.
        mutating func text(done: Int, of total: Int?, note: String = "", at now: ContinuousClock.Instant) -> String? {
            let isDue = self.last.map { $0.duration(to: now) >= self.style.interval } ?? true
            guard self.style != .silent, done == total || isDue else { return nil }
            self.last = now
            let line = "\(self.work): \(Self.count(done, of: total))\(note)"
            guard self.style == .oneLine else { return "\(line)\n" }
            self.lineIsOpen = true
            return Self.clearLine + line
        }

        /// Returns the text that clears the open line, before anything else is written.
        mutating func ending() -> String? {
            guard self.lineIsOpen else { return nil }
            self.lineIsOpen = false
            return Self.clearLine
        }

        private static func count(_ done: Int, of total: Int?) -> String {
            guard let total else { return "\(done)" }
            // Zero of zero is 100 %. A count that grows beyond the total must not lead to more than 100 %.
            let percentage = total > 0 ? min(100, Int((Double(done) / Double(total) * 100).rounded(.down))) : 100
            return "\(done) of \(total) (\(percentage) %)"
        }
    }
}
