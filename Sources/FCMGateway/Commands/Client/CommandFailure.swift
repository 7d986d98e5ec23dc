import Foundation

/// Why a verb failed; printed to standard error, with exit code 1.
struct CommandFailure: Error, Sendable, Equatable {
    /// What happened, for people; never holds a secret.
    let message: String

    /// States what happened.
    init(_ message: String) {
        self.message = message
    }
}

extension CommandFailure: LocalizedError, CustomStringConvertible {
    /// The message.
    var description: String { self.message }

    /// The message.
    var errorDescription: String? { self.message }
}
