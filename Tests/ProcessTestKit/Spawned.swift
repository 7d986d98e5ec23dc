import Foundation
import Synchronization

/// A child of this process, and its end.
///
/// Foundation's `Process` misses the end of a child now and then when the machine is busy; the system call does not.
final class Spawned: Sendable {
    /// Why a program did not start.
    struct Failure: Error, CustomStringConvertible {
        let program: String
        let code: Int32

        var description: String { "\(self.program) did not start: error \(self.code)" }
    }

    let pid: pid_t
    /// Whether it has been waited for, so that its number may belong to another process.
    private let isGone = Mutex(false)

    /// Starts a program by its path, with these variables alone and the descriptors as standard input, output and error.
    init(_ program: String, _ arguments: [String], environment: [String: String], descriptors: [Int32]) throws {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor) in descriptors.enumerated() {
            unsafe posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(number))
        }
        // It has no others, whatever this process has open: some tests count them, others wait until a pipe is closed.
        // Some are opened meanwhile, with the lowest numbers that are free.
        let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        let end = (open.compactMap { Int32($0) }.max() ?? 0) + 1_024
        for descriptor in Int32(descriptors.count)..<end {
            unsafe posix_spawn_file_actions_addclose(&actions, descriptor)
        }
        let texts = [[program] + arguments, environment.map { "\($0.key)=\($0.value)" }]
        var lists = unsafe texts.map { list in unsafe list.map { unsafe strdup($0) } + [nil] }
        defer { unsafe lists.joined().forEach { unsafe free($0) } }
        var pid = pid_t(0)
        let code = unsafe posix_spawn(&pid, program, &actions, nil, &lists[0], &lists[1])
        guard code == 0 else { throw Failure(program: program, code: code) }
        self.pid = pid
    }

    /// Calls back on a thread of its own once it has ended.
    func whenEnded(_ body: @escaping @Sendable (ChildProcess.End) -> Void) {
        Thread.detachNewThread { [self] in
            // The number stays its own until it is waited for, which is done where no signal can be sent meanwhile.
            var information = unsafe siginfo_t()
            while unsafe waitid(P_PID, id_t(self.pid), &information, WEXITED | WNOWAIT) == -1, errno == EINTR {}
            let status = self.isGone.withLock { isGone in
                isGone = true
                var status = Int32(0)
                unsafe waitpid(self.pid, &status, 0)
                return status
            }
            let signal = status & 0x7F
            body(signal == 0 ? .code(status >> 8 & 0xFF) : .signal(signal))
        }
    }

    /// Sends a signal, unless it has ended.
    func signal(_ number: Int32) {
        self.isGone.withLock { isGone in
            guard !isGone else { return }
            kill(self.pid, number)
        }
    }
}
