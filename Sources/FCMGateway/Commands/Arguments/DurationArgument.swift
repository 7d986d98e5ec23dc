import ArgumentParser
import FCMModel

/// A length of time such as `90s`, `15m`, `24h` or `7d`.
struct DurationArgument: Sendable, Equatable, ExpressibleByArgument {
    /// The length in whole seconds.
    let seconds: Int

    /// Creates a length of time.
    init(seconds: Int) {
        self.seconds = seconds
    }

    /// Accepts digits and one unit; a bare number is ambiguous and refused.
    init?(argument: String) {
        let factors: [Character: Int] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        guard let unit = argument.last, let factor = factors[unit],
            let number = Int(digits: argument.dropLast()),
            case let (seconds, overflow) = number.multipliedReportingOverflow(by: factor), !overflow
        else { return nil }
        self.seconds = seconds
    }

    /// How the value reads in help.
    var defaultValueDescription: String { "\(self.seconds)s" }
}
