import Dispatch
import Foundation
import NIOCore
import Synchronization

/// Writes log lines completely, in order and never mixed.
///
/// No caller waits for a line to be written, so a log reader that stalls can't stop the gateway. A queue writes the
/// collected lines together, after 5 ms. It writes at once if a line is urgent or 64 KiB have been collected.
final class LogOutput: Sendable {
    /// The maximum number of bytes that wait or are being written. Further lines are dropped and counted.
    static let maxBytes = 8 * 1_024 * 1_024
    /// The number of bytes reserved for urgent lines. A flood of other lines must not hide the cause of the flood.
    private static let urgentBytes = 1_024 * 1_024
    private static let fullBytes = 64 * 1_024
    private static let delay = DispatchTimeInterval.milliseconds(5)

    private struct State {
        var pending: [UInt8] = []
        /// The buffer of the last write. It is emptied and used again, which saves an allocation.
        var spare: [UInt8] = []
        /// The number of bytes being written.
        var writing = 0
        var lost = 0
        var isScheduled = false
        var isUrgent = false
    }

    private let state = Mutex(State())
    private let file: Mutex<LineFile>
    private let queue = DispatchQueue(label: "fcm-gateway.log")
    private let timeout: DispatchTimeInterval
    private let lossLine: @Sendable (Int) -> ByteBuffer

    /// Creates an output to a file. At the end of the process, a flush waits for the reader until the timeout.
    /// `lossLine` creates the line that reports the number of lost lines.
    init(
        _ handle: sending FileHandle,
        timeout: DispatchTimeInterval = .seconds(2),
        lossLine: @escaping @Sendable (Int) -> ByteBuffer
    ) {
        self.file = Mutex(LineFile(handle))
        self.timeout = timeout
        self.lossLine = lossLine
    }

    /// Queues a line. An urgent line is written at once, because it may name the reason that the process is about to
    /// end.
    func write(_ line: Span<UInt8>, isUrgent: Bool) {
        let bound = isUrgent ? Self.maxBytes : Self.maxBytes - Self.urgentBytes
        let deadline: DispatchTime? = self.state.withLock { state in
            guard state.pending.count + state.writing + line.count <= bound else {
                state.lost += 1
                return nil
            }
            // Unsafe: the bytes are copied while the span lives.
            unsafe line.withUnsafeBufferPointer { unsafe state.pending.append(contentsOf: $0) }
            let isUrgent = isUrgent || state.pending.count >= Self.fullBytes
            guard !state.isScheduled || isUrgent && !state.isUrgent else { return nil }
            (state.isScheduled, state.isUrgent) = (true, isUrgent)
            return isUrgent ? .now() : .now() + Self.delay
        }
        if let deadline { self.queue.asyncAfter(deadline: deadline) { self.drain() } }
    }

    /// Returns as soon as all earlier lines are written. Returns at the timeout if the lines are not read.
    func flush() {
        let isDrained = DispatchSemaphore(value: 0)
        self.queue.async {
            self.drain()
            isDrained.signal()
        }
        _ = isDrained.wait(timeout: .now() + self.timeout)
    }

    /// Writes the waiting lines. Runs only on the queue, so that the lines stay in order.
    ///
    /// A line that can't be written is dropped and counted, because a broken log must stop nothing.
    private func drain() {
        var (bytes, lost) = self.state.withLock { state in
            let taken = (state.pending, state.lost)
            (state.pending, state.spare, state.writing) = (state.spare, [], state.pending.count)
            (state.lost, state.isScheduled, state.isUrgent) = (0, false, false)
            return taken
        }
        if lost > 0 { bytes += self.lossLine(lost).readableBytesView }
        let unwritten = bytes.isEmpty ? 0 : self.file.withLock { $0.append(bytes.span) }
        bytes.removeAll(keepingCapacity: bytes.capacity <= 2 * Self.fullBytes)
        self.state.withLock { state in
            (state.spare, state.writing) = (bytes, 0)
            // The line about losses is not counted as a lost line.
            if unwritten > 0 { state.lost += max(unwritten - (lost > 0 ? 1 : 0), 0) + lost }
        }
    }
}

extension LogOutput {
    /// A file of lines, which may accept only part of the bytes at a time.
    private struct LineFile {
        private let handle: FileHandle
        /// True if the last line was truncated. The next line then needs a newline before it.
        private var isCut = false

        init(_ handle: FileHandle) {
            self.handle = handle
        }

        /// Writes lines, and waits while the file accepts nothing. Returns the number of lines at the end that were not
        /// written, including a truncated line.
        mutating func append(_ lines: Span<UInt8>) -> Int {
            if self.isCut {
                guard self.put([UInt8(ascii: "\n")].span) == 1 else { return Self.count(lines, from: 0) }
                self.isCut = false
            }
            let written = self.put(lines)
            self.isCut = written > 0 && lines[written - 1] != UInt8(ascii: "\n")
            return Self.count(lines, from: written)
        }

        private func put(_ bytes: Span<UInt8>) -> Int {
            StandardStream.write(bytes, to: self.handle.fileDescriptor).count
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
}
