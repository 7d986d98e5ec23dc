import Foundation
import Synchronization

/// Where log lines go; whole lines, never mixed.
final class LogOutput: Sendable {
    private let handle: Mutex<FileHandle>

    init(_ handle: sending FileHandle) {
        self.handle = Mutex(handle)
    }

    /// Writes one line.
    ///
    /// A line that can't be written is lost: nothing may stop because its log has nowhere to go.
    func write(_ line: Data) {
        self.handle.withLock { try? $0.write(contentsOf: line) }
    }
}
