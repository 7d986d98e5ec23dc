import ArgumentParser
import Foundation
import GatewayService

/// The option of verbs that may work for long.
struct ProgressOptions: ParsableArguments {
    /// Whether to tell how far the work has got; nil tells terminals only.
    @Flag(
        inversion: .prefixedNo,
        help: "Say on standard error how far the work has got (default: only on a terminal)."
    )
    var progress: Bool?

    /// A reporter as the options and the terminal have it.
    ///
    /// - Parameter work: What is done, as in `audit records`.
    /// - Returns: The reporter.
    func reporter(_ work: String) -> ProgressReporter {
        let terminal = Terminal(.standardError, environment: ProcessInfo.processInfo.environment)
        let pace = ProgressPace(work, style: .init(isWanted: self.progress, on: terminal))
        return ProgressReporter(pace) { try? FileHandle.standardError.write(contentsOf: Data($0.utf8)) }
    }
}
