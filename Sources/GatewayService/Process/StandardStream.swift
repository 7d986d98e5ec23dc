package import Foundation

/// A standard stream of this process, written so that no failure goes unnoticed.
package enum StandardStream: Int32, Sendable {
    case output = 1
    case errors = 2

    /// Why a stream took no more, by the system's number of the error.
    package struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        package let number: Int32

        /// True if whoever read it has gone, as `| head` does when it has enough.
        package var isClosedPipe: Bool { self.number == EPIPE }

        package var description: String { SystemError.text(self.number) }
    }

    /// Writes a text; throws when not all of it was taken.
    package func write(_ text: String) throws(Failure) {
        _ = Self.ignoresClosedPipes
        let bytes = Array(text.utf8)
        let (count, error) = Self.write(bytes.span, to: self.rawValue)
        if count < bytes.count { throw Failure(number: error) }
    }

    /// Writes bytes to a descriptor until there are none left or it refuses them, and waits while it takes none; returns
    /// how many were written, and the system's number of the error where that are not all.
    static func write(_ bytes: Span<UInt8>, to descriptor: Int32) -> (count: Int, error: Int32) {
        var written = 0
        while written < bytes.count {
            // POSIX takes the bytes as a pointer, valid during the call. What `fputs` kept back would fail unseen.
            let count = unsafe bytes.extracting(written...)
                .withUnsafeBytes { rest in unsafe writeBytes(descriptor, rest.baseAddress, rest.count) }
            if count > 0 {
                written += count
            } else if count < 0, errno == EAGAIN {
                // A descriptor that does not block, maybe since another process that shares the terminal made it so.
                var awaited = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&awaited, 1, -1)
            } else if count == 0 || errno != EINTR {
                return (written, errno)
            }
        }
        return (written, 0)
    }

    /// A closed pipe is a failure like others, and not the process's end before it can say so.
    private static let ignoresClosedPipes: Bool = {
        _ = signal(SIGPIPE, SIG_IGN)
        return true
    }()
}

/// The system's function, whose name the stream's own method has.
private func writeBytes(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    unsafe write(descriptor, bytes, count)
}

/// What one of the process's streams leads to, and what may be written to it.
package struct Terminal: Sendable {
    /// True if somebody watches: the stream is a terminal.
    package let isTerminal: Bool
    private let environment: [String: String]

    package init(_ handle: FileHandle, environment: [String: String]) {
        self.init(isTerminal: isatty(handle.fileDescriptor) == 1, environment: environment)
    }

    package init(isTerminal: Bool, environment: [String: String]) {
        self.isTerminal = isTerminal
        self.environment = environment
    }

    /// True if words may be coloured.
    ///
    /// `NO_COLOR` forbids it everywhere; `CLICOLOR_FORCE` demands it everywhere else; without either, terminals that can
    /// show colours get them.
    package var showsColour: Bool {
        if self.isSet("NO_COLOR") { return false }
        if self.isSet("CLICOLOR_FORCE"), self.environment["CLICOLOR_FORCE"] != "0" { return true }
        return self.rewritesLines && self.environment["CLICOLOR"] != "0"
    }

    /// True if a line can be written over: a terminal that is not a dumb one.
    package var rewritesLines: Bool {
        self.isTerminal && self.isSet("TERM") && self.environment["TERM"] != "dumb"
    }

    private func isSet(_ variable: String) -> Bool {
        self.environment[variable]?.isEmpty == false
    }
}
