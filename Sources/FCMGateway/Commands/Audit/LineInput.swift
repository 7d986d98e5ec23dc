import Foundation
import NIOCore

/// Reads a file line by line, whatever its size.
struct LineInput {
    /// The bound on a line: what a record of the largest request takes many times over.
    static let maxLineBytes = 16 << 20
    private static let chunkBytes = 1 << 16

    /// A line is longer than any that the gateway writes.
    struct TooLong: Error {}

    private let handle: FileHandle
    private var buffer = ByteBuffer()
    /// How much of the buffer is known to have no line's end.
    private var searched = 0
    private var isAtEnd = false

    /// The lines of an open file.
    init(_ handle: FileHandle) {
        self.handle = handle
    }

    /// The next line without its end.
    ///
    /// - Returns: `nil` at the end; what follows the last line's end is no line unless it holds something.
    /// - Throws: ``TooLong``, and what keeps the file from being read.
    mutating func next() throws -> ByteBuffer? {
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
                self.searched = 0
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
