/// A signal that asks a program to end.
enum StopSignal: Int32, Sendable {
    /// The terminal has gone.
    case hangup = 1
    /// Somebody pressed Ctrl-C.
    case interrupt = 2
    /// Somebody, or the service manager, wants the program to end.
    case termination = 15
}

extension StopSignal: CustomStringConvertible {
    /// The signal's name in POSIX.
    var description: String {
        switch self {
        case .hangup: "SIGHUP"
        case .interrupt: "SIGINT"
        case .termination: "SIGTERM"
        }
    }
}
