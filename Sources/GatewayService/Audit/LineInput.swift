import Foundation
package import GatewayCore
package import NIOCore

/// Reads a file line by line, whatever its size.
package struct LineInput {
    /// The bound on a line: what a record of the largest request takes many times over.
    package static let maxLineBytes = 16 << 20
    private static let chunkBytes = 1 << 16

    /// A line is longer than any that the gateway writes.
    package struct TooLong: Error {}

    private let handle: FileHandle
    private var buffer = ByteBuffer()
    /// How much of the buffer is known to have no line's end.
    private var searched = 0
    private var isAtEnd = false
    /// Whether the last line that was read had an end.
    package private(set) var isWhole = true

    package init(_ path: String) throws {
        if path == "-" {
            self.handle = .standardInput
        } else {
            self.handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        }
    }

    /// The next line without its end; `nil` at the end: what follows the last line's end is no line unless it holds
    /// something.
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
    /// Reads a file; several are the parts of one sink, oldest first.
    ///
    /// What the last file leaves open, ``finding`` and ``warning`` tell.
    package mutating func read(_ path: String) throws {
        var lines = try LineInput(path)
        self.begin(path)
        while let line = try lines.next() {
            guard lines.isWhole else { return try self.endTorn() }
            try self.take(line)
        }
    }
}
