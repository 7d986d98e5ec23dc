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

/// Keeps the secrets in this process's memory out of crash reports and away from other processes.
///
/// See docs/decisions/0024-memory-stays-inside.md.
package enum ProcessProtection {
    /// The variable with the crash settings of Swift's runtime. The runtime reads it once, before the program begins.
    static let backtraceVariable = "SWIFT_BACKTRACE"
    /// The runtime must not print registers, because they and the memory around them hold secrets. It must not ask
    /// questions.
    static let backtraceSettings = "registers=none,interactive=no"

    /// The signals for which Swift's runtime prints a backtrace.
    private static let crashSignals = [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGQUIT]

    /// Turns core dumps off, and keeps the contents of registers and memory out of backtraces. Must run first, before
    /// any secret is read.
    ///
    /// May restart the program, in this process, with other runtime settings in the environment.
    package static func begin() {
        #if os(Linux)
        self.limitBacktraces()
        var limit = rlimit(rlim_cur: 0, rlim_max: 0)
        // POSIX reads the limit during the call. Two measures are needed. The limit does not stop a core dump that the
        // system pipes to a program, and the other call does not work everywhere.
        let isLimited = unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0
        if !isLimited || fcmgw_forbid_dumps() != 0 {
            try? StandardStream.errors.write("fcm-gateway: core dumps can't be turned off: errno \(errno)\n")
        }
        #endif
    }

    /// Returns the settings for a restart. Returns `nil` if the current settings already print no memory.
    ///
    /// Later settings override earlier ones, so an operator's choices stay in force unless they print memory.
    static func settings(instead current: String?) -> String? {
        guard let current, !current.isEmpty else { return self.backtraceSettings }
        return current.hasSuffix(self.backtraceSettings) ? nil : "\(current),\(self.backtraceSettings)"
    }

    #if os(Linux)
    private static func limitBacktraces() {
        // The runtime prints nothing if no backtracer is installed. A deployed program usually has none.
        guard self.hasCrashHandler else { return }
        // The runtime uses the first of a repeated variable, and so does this call. The text is copied at once.
        let current = unsafe getenv(self.backtraceVariable).map { unsafe String(cString: $0) }
        guard let settings = self.settings(instead: current) else { return }
        // The program is restarted by its real path. Through the link, the process would be called `exe`.
        let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        // POSIX reads the texts during the call. The process owns the arguments.
        if let program, unsafe setenv(self.backtraceVariable, settings, 1) == 0 {
            unsafe execv(program, CommandLine.unsafeArgv)
        }
        // The restart failed, so backtraces are turned off completely.
        for signal in self.crashSignals { _ = Glibc.signal(signal, SIG_DFL) }
    }

    private static var hasCrashHandler: Bool {
        var action = sigaction()
        // POSIX fills a value that belongs to this function.
        guard unsafe sigaction(SIGSEGV, nil, &action) == 0 else { return true }
        return unsafe action.__sigaction_handler.sa_handler != nil
    }
    #endif
}
