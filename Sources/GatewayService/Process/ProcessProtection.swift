import Foundation

#if os(Linux)
import CProcess
#endif

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Keeps the secrets in this process's memory from leaving it when it crashes, and from being read beside it.
///
/// See docs/decisions/0024-memory-stays-inside.md.
package enum ProcessProtection {
    /// The variable by which Swift's runtime is told what to do in a crash; read once, before the program begins.
    static let backtraceVariable = "SWIFT_BACKTRACE"
    /// No registers, which hold secrets and whose surroundings are printed with them, and no questions.
    static let backtraceSettings = "registers=none,interactive=no"

    /// The signals that Swift's runtime handles by printing a backtrace.
    private static let crashSignals = [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGQUIT]

    /// Turns core dumps off, and lets backtraces say where and not what; for the very start, before any secret is read.
    ///
    /// May start the program anew, in this process, with the settings that the runtime takes from the environment.
    package static func begin() {
        #if os(Linux)
        self.limitBacktraces()
        var limit = rlimit(rlim_cur: 0, rlim_max: 0)
        // POSIX takes the limit as a pointer, valid during the call. The limit alone would not stop a core dump that
        // the system hands to a program, nor would the other stop it everywhere.
        let isLimited = unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0
        if !isLimited || fcmgw_forbid_dumps() != 0 {
            try? StandardStream.errors.write("fcm-gateway: core dumps can't be turned off: errno \(errno)\n")
        }
        #endif
    }

    /// The settings to start anew with; `nil` where the variable's current ones already print no memory.
    ///
    /// Later settings win over earlier ones, so what an operator chose stays in force as far as it prints no memory.
    static func settings(instead current: String?) -> String? {
        guard let current, !current.isEmpty else { return self.backtraceSettings }
        return current.hasSuffix(self.backtraceSettings) ? nil : "\(current),\(self.backtraceSettings)"
    }

    #if os(Linux)
    private static func limitBacktraces() {
        // Where no backtracer is installed, as beside a program that was built for deployment, nothing is printed.
        guard self.hasCrashHandler else { return }
        // As the runtime reads it: of a variable that is there twice, the first counts. The text is copied at once.
        let current = unsafe getenv(self.backtraceVariable).map { unsafe String(cString: $0) }
        guard let settings = self.settings(instead: current) else { return }
        // By its own path, because by the link the process would be called `exe`.
        let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        // POSIX takes texts as pointers, valid during the call; the arguments belong to the process.
        if let program, unsafe setenv(self.backtraceVariable, settings, 1) == 0 {
            unsafe execv(program, CommandLine.unsafeArgv)
        }
        // It could not be started anew, so there are no backtraces at all.
        for signal in self.crashSignals { _ = Glibc.signal(signal, SIG_DFL) }
    }

    private static var hasCrashHandler: Bool {
        var action = sigaction()
        // POSIX fills in a value of ours.
        guard unsafe sigaction(SIGSEGV, nil, &action) == 0 else { return true }
        return unsafe action.__sigaction_handler.sa_handler != nil
    }
    #endif
}
