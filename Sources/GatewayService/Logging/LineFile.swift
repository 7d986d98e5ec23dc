import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A file that lines are written to, whatever it takes at a time.
struct LineFile {
    private let handle: FileHandle
    /// Whether the last line was cut off, so that the next must not follow it.
    private var isCut = false

    /// A file that is open.
    init(_ handle: FileHandle) {
        self.handle = handle
    }

    /// Writes lines, and waits while the file takes nothing.
    ///
    /// - Returns: how many lines at the end could not be written, one that was cut off included.
    mutating func append(_ lines: Span<UInt8>) -> Int {
        if self.isCut {
            guard self.put([UInt8(ascii: "\n")].span) == 1 else { return Self.count(lines, from: 0) }
            self.isCut = false
        }
        let written = self.put(lines)
        self.isCut = written > 0 && lines[written - 1] != UInt8(ascii: "\n")
        return Self.count(lines, from: written)
    }

    /// Writes bytes until there are none left, or the file refuses them.
    ///
    /// - Returns: how many were written.
    private func put(_ bytes: Span<UInt8>) -> Int {
        var written = 0
        while written < bytes.count {
            // POSIX takes the bytes as a pointer, valid during the call.
            let count = unsafe bytes.extracting(written...)
                .withUnsafeBytes { rest in
                    unsafe write(self.handle.fileDescriptor, rest.baseAddress, rest.count)
                }
            if count > 0 {
                written += count
            } else if count < 0, errno == EAGAIN {
                // A file that was told not to wait; this queue has nothing else to do.
                var awaited = pollfd(fd: self.handle.fileDescriptor, events: Int16(POLLOUT), revents: 0)
                unsafe poll(&awaited, 1, -1)
            } else if count == 0 || errno != EINTR {
                return written
            }
        }
        return written
    }

    private static func count(_ lines: Span<UInt8>, from start: Int) -> Int {
        var count = 0
        var index = start
        while index < lines.count {
            if lines[index] == UInt8(ascii: "\n") { count += 1 }
            index += 1
        }
        return count
    }
}
