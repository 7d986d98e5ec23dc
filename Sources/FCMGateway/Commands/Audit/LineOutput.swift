import Foundation
import NIOCore
import NIOFoundationCompat

/// Writes many lines, some of them at a time.
struct LineOutput {
    private static let capacity = 1 << 16

    private let handle: FileHandle
    private var waiting = ByteBuffer()

    /// Lines to an open file.
    init(_ handle: FileHandle) {
        self.handle = handle
    }

    /// Adds a line.
    ///
    /// - Throws: when the file takes no more.
    mutating func write(_ line: ByteBuffer) throws {
        self.waiting.writeImmutableBuffer(line)
        self.waiting.writeInteger(UInt8(ascii: "\n"))
        if self.waiting.readableBytes >= Self.capacity { try self.flush() }
    }

    /// Writes what waits.
    ///
    /// - Throws: when the file takes no more.
    mutating func flush() throws {
        guard self.waiting.readableBytes > 0 else { return }
        try self.handle.write(contentsOf: Data(buffer: self.waiting))
        self.waiting.clear()
    }
}
