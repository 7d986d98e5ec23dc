#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A standard stream of this process, written so that no failure goes unnoticed.
package enum StandardStream: Int32, Sendable {
    /// Where answers go.
    case output = 1
    /// Where remarks go.
    case errors = 2

    /// Why a stream took no more.
    package struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        /// The system's number of the error.
        package let number: Int32

        /// Whether whoever read it has gone, as `| head` does when it has enough.
        package var isClosedPipe: Bool { self.number == EPIPE }

        /// What the system says of it.
        package var description: String {
            // The text belongs to the system and is copied at once.
            unsafe String(cString: strerror(self.number))
        }
    }

    /// Writes a text whole.
    ///
    /// - Throws: `Failure` when not all of it was taken.
    package func write(_ text: String) throws(Failure) {
        _ = Self.ignoresClosedPipes
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { bytes in
                // POSIX takes bytes as a pointer, valid during the call. What `fputs` kept back would fail unseen.
                unsafe writeBytes(self.rawValue, bytes.baseAddress, bytes.count)
            }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // Somebody who shares the terminal made it answer at once.
                var waiting = pollfd(fd: self.rawValue, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&waiting, 1, -1)
            } else if errno != EINTR {
                throw Failure(number: errno)
            }
        }
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
