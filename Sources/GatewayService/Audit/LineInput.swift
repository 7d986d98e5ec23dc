import Foundation
package import GatewayCore
package import NIOCore

/// Reads a file of any size line by line.
package struct LineInput {
    /// The maximum number of bytes of a line, many times the record of the largest request.
    package static let maxLineBytes = 16 << 20
    private static let chunkBytes = 1 << 16

    /// A line is longer than any line that the gateway writes.
    package struct TooLong: Error {}

    private let handle: FileHandle
    private var buffer = ByteBuffer()
    /// The number of bytes in the buffer that are known to hold no newline.
    private var searched = 0
    private var isAtEnd = false
    /// True if the last line read ended with a newline.
    package private(set) var isWhole = true

    package init(_ path: String) throws {
        if path == "-" {
            self.handle = .standardInput
        } else {
            self.handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        }
    }

    /// Returns the next line without its newline. Returns `nil` at the end. Bytes after the last newline are a line
    /// too.
    package mutating func next() throws -> ByteBuffer? {
        while true {
            let view = self.buffer.readableBytesView
            if let end = view.dropFirst(self.searched).firstIndex(of: UInt8(ascii: "\n")) {
                let line = self.buffer.readSlice(length: end - view.startIndex)
                self.buffer.moveReaderIndex(forwardBy: 1)
                self.searched = 0
                return line
            }
            self.searched = self.buffer.readableBytes
            guard self.searched <= Self.maxLineBytes else { throw TooLong() }
            if self.isAtEnd {
                (self.searched, self.isWhole) = (0, false)
                guard self.buffer.readableBytes > 0 else { return nil }
                return self.buffer.readSlice(length: self.buffer.readableBytes)
            }
            self.buffer.discardReadBytes()
            if let data = try self.handle.read(upToCount: Self.chunkBytes), !data.isEmpty {
                self.buffer.writeBytes(data)
            } else {
                self.isAtEnd = true
            }
        }
    }
}

extension AuditSinkVerifier {
    /// Reads a file. Several files are the parts of one sink, oldest first.
    ///
    /// The result is in ``finding`` and ``warning``.
    package mutating func read(_ path: String) throws {
        var lines = try LineInput(path)
        self.begin(path)
        while let line = try lines.next() {
            guard lines.isWhole else { return try self.endTorn() }
            try self.take(line)
        }
    }
}
