import Dispatch
import Foundation
import Synchronization

/// Where log lines go; whole lines, in order, never mixed.
///
/// Nobody waits for a line to be written: who reads the log must not be able to stop the gateway by not reading. Lines
/// are gathered for a moment and written together by a queue of their own, those that tell of trouble at once.
final class LogOutput: Sendable {
    /// The most that waits or is being written, in bytes; what comes then is lost, and counted.
    static let maxBytes = 8 * 1_024 * 1_024
    /// What is left for lines that tell of trouble, in bytes: a flood of others must not hide its cause.
    private static let urgentBytes = 1_024 * 1_024
    private static let fullBytes = 64 * 1_024
    private static let delay = DispatchTimeInterval.milliseconds(5)

    private struct State {
        var pending: [UInt8] = []
        /// What was written last, emptied, so that its memory is used again.
        var spare: [UInt8] = []
        /// How much of what was taken is not written yet, in bytes.
        var writing = 0
        var lost = 0
        var isScheduled = false
        var isUrgent = false
    }

    private let state = Mutex(State())
    private let file: Mutex<LineFile>
    private let queue = DispatchQueue(label: "fcm-gateway.log")
    private let timeout: DispatchTimeInterval
    private let lossLine: @Sendable (Int) -> [UInt8]

    /// An output to a file; the end of a process waits for a reader for so long, and `lossLine` makes the line that tells
    /// how many lines were lost.
    init(
        _ handle: sending FileHandle,
        timeout: DispatchTimeInterval = .seconds(2),
        lossLine: @escaping @Sendable (Int) -> [UInt8]
    ) {
        self.file = Mutex(LineFile(handle))
        self.timeout = timeout
        self.lossLine = lossLine
    }

    /// Has a line written soon, an urgent one at once: it may tell why the process is about to end.
    func write(_ line: [UInt8], isUrgent: Bool) {
        let bound = isUrgent ? Self.maxBytes : Self.maxBytes - Self.urgentBytes
        let deadline: DispatchTime? = self.state.withLock { state in
            guard state.pending.count + state.writing + line.count <= bound else {
                state.lost += 1
                return nil
            }
            state.pending += line
            let isUrgent = isUrgent || state.pending.count >= Self.fullBytes
            guard !state.isScheduled || isUrgent && !state.isUrgent else { return nil }
            (state.isScheduled, state.isUrgent) = (true, isUrgent)
            return isUrgent ? .now() : .now() + Self.delay
        }
        if let deadline { self.queue.asyncAfter(deadline: deadline) { self.drain() } }
    }

    /// Returns when every line is written that came before, or when the timeout ends because nobody reads them.
    func flush() {
        let isDrained = DispatchSemaphore(value: 0)
        self.queue.async {
            self.drain()
            isDrained.signal()
        }
        _ = isDrained.wait(timeout: .now() + self.timeout)
    }

    /// Writes what waits; on the queue only, so that lines stay in order.
    ///
    /// A line that can't be written is lost, and counted: nothing may stop because its log has nowhere to go.
    private func drain() {
        var (bytes, lost) = self.state.withLock { state in
            let taken = (state.pending, state.lost)
            (state.pending, state.spare, state.writing) = (state.spare, [], state.pending.count)
            (state.lost, state.isScheduled, state.isUrgent) = (0, false, false)
            return taken
        }
        if lost > 0 { bytes += self.lossLine(lost) }
        let unwritten = bytes.isEmpty ? 0 : self.file.withLock { $0.append(bytes.span) }
        bytes.removeAll(keepingCapacity: bytes.capacity <= 2 * Self.fullBytes)
        self.state.withLock { state in
            (state.spare, state.writing) = (bytes, 0)
            // The line that told of losses is none of those that were to be told of.
            if unwritten > 0 { state.lost += max(unwritten - (lost > 0 ? 1 : 0), 0) + lost }
        }
    }
}

/// A file that lines are written to, whatever it takes at a time.
private struct LineFile {
    private let handle: FileHandle
    /// Whether the last line was cut off, so that the next must not follow it.
    private var isCut = false

    init(_ handle: FileHandle) {
        self.handle = handle
    }

    /// Writes lines, and waits while the file takes nothing; returns how many at the end could not be written, one that
    /// was cut off included.
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
