package import Foundation

/// A standard stream of this process. Every failed write is reported.
package enum StandardStream: Int32, Sendable {
    case output = 1
    case errors = 2

    /// The reason that a stream accepted no more bytes, as the system's error number.
    package struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        package let number: Int32

        /// True if the reader has closed the pipe, as `| head` does when it has read enough.
        package var isClosedPipe: Bool { self.number == EPIPE }

        package var description: String { SystemError.text(self.number) }
    }

    /// Writes a text. Throws unless all of the text was written.
    package func write(_ text: String) throws(Failure) {
        _ = Self.ignoresClosedPipes
        let bytes = Array(text.utf8)
        let (count, error) = Self.write(bytes.span, to: self.rawValue)
        if count < bytes.count { throw Failure(number: error) }
    }

    /// Writes all bytes to a descriptor, and waits while it accepts none. Returns the number of bytes written. If that
    /// is not all of them, also returns the system's error number.
    static func write(_ bytes: Span<UInt8>, to descriptor: Int32) -> (count: Int, error: Int32) {
        var written = 0
        while written < bytes.count {
            // POSIX reads the bytes during the call. `fputs` would buffer them and hide a failure.
            let count = unsafe bytes.extracting(written...)
                .withUnsafeBytes { rest in unsafe writeBytes(descriptor, rest.baseAddress, rest.count) }
            if count > 0 {
                written += count
            } else if count < 0, errno == EAGAIN {
                // The descriptor does not block, perhaps because another process on the same terminal changed it.
                var awaited = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&awaited, 1, -1)
            } else if count == 0 || errno != EINTR {
                return (written, errno)
            }
        }
        return (written, 0)
    }

    /// Makes a closed pipe an ordinary failure, instead of a signal that ends the process.
    private static let ignoresClosedPipes: Bool = {
        _ = signal(SIGPIPE, SIG_IGN)
        return true
    }()
}

/// The system's function; the stream's own method has the same name.
private func writeBytes(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    unsafe write(descriptor, bytes, count)
}

/// The terminal of one of the process's streams, and what it can show.
package struct Terminal: Sendable {
    /// True if the stream is a terminal.
    package let isTerminal: Bool
    private let environment: [String: String]

    package init(_ handle: FileHandle, environment: [String: String]) {
        self.init(isTerminal: isatty(handle.fileDescriptor) == 1, environment: environment)
    }

    package init(isTerminal: Bool, environment: [String: String]) {
        self.isTerminal = isTerminal
        self.environment = environment
    }

    /// True if text may be coloured.
    ///
    /// `NO_COLOR` forbids colours. Otherwise `CLICOLOR_FORCE` requires them. Without either variable, terminals that
    /// support colours get them.
    package var showsColour: Bool {
        if self.isSet("NO_COLOR") { return false }
        if self.isSet("CLICOLOR_FORCE"), self.environment["CLICOLOR_FORCE"] != "0" { return true }
        return self.rewritesLines && self.environment["CLICOLOR"] != "0"
    }

    /// True if a line can be overwritten. That needs a terminal other than `dumb`.
    package var rewritesLines: Bool {
        self.isTerminal && self.isSet("TERM") && self.environment["TERM"] != "dumb"
    }

    private func isSet(_ variable: String) -> Bool {
        self.environment[variable]?.isEmpty == false
    }
}
