/// Why the emulator could not be used as asked.
package enum EmulatorError: Error, Equatable {
    /// `run()` was called a second time; an emulator runs once.
    case alreadyRun
    /// `run()` ended before the port was bound.
    case neverBound
    /// The text is no topic name: 1 to 900 characters of `A-Z a-z 0-9 - _ . ~ %`, without `/topics/`.
    case badTopic(String)
    /// The text is no service-account file; the value says why.
    case badServiceAccount(String)
}
