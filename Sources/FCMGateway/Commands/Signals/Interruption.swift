import ArgumentParser

/// A verb ended because a signal asked it to, where nothing is lost by that.
struct Interruption: Error {
    /// The signal.
    let signal: StopSignal
    /// What was done and what was not, for people.
    let message: String

    /// How the process ends: 128 and the signal's number, as shells report it.
    var exitCode: ExitCode { ExitCode(128 + self.signal.rawValue) }
}
