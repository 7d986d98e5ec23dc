import Dispatch
import Foundation
import GatewayCore
import NIOCore
import Synchronization

/// The audit's second sink as an append-only file of JSON lines.
///
/// The feeder delivers records with the checkpoint that covers them. After an interruption, the file is half written:
///
///     record record checkpoint 7 | record rec     (stays in the file)
///                                | record record checkpoint 8     (the repeated delivery, on a new line)
///
/// After log rotation has moved the file away, ``reopen()`` starts another file. The new file begins with the last
/// checkpoint of the old one.
final class AuditSinkFile: AuditSink {
    private struct State {
        var handle: FileHandle?
        /// The last checkpoint that was written completely.
        var last: SignedCheckpoint?
        /// True if the last checkpoint is followed by lines that no checkpoint covers yet.
        var isHalfWritten = false
        var isMidLine = false
        var hasLine = false
    }

    /// The number of bytes read at a time, backwards from the end of the file.
    private static let blockBytes = 1 << 20
    private static let newline = UInt8(ascii: "\n")

    private let path: String
    private let name: String
    private let state = BlockingState(State())
    private let wantsReopening = Atomic(false)

    /// Creates a sink for a file. Does not open the file yet. A missing file is created when it is opened.
    init(path: String, name: String) {
        (self.path, self.name) = (path, name)
    }

    /// Reopens the file by its name, now or as soon as the checkpoint being written is complete.
    func reopen() async {
        self.wantsReopening.store(true, ordering: .sequentiallyConsistent)
        // The next delivery would fail in the same way, and reports the failure.
        try? await self.blocking { try self.changeIfWanted(&$0) }
    }

    func resume() async throws(GatewayError) -> AuditSinkPlace {
        try await self.blocking { state in
            try self.openFile(&state)
            guard let last = state.last else { return state.hasLine ? .begun : .unknown }
            return .checkpoint(last, isWhole: !state.isHalfWritten)
        }
    }

    func write(_ lines: [AuditLine], isWhole: Bool) async throws(GatewayError) {
        try await self.blocking { state in
            try self.changeIfWanted(&state)
            try self.write(lines, &state)
            guard isWhole else { return }
            try state.handle?.synchronize()
            state.last = lines.lastCheckpoint ?? state.last
            state.isHalfWritten = false
            try self.changeIfWanted(&state)
        }
    }

    private func write(_ lines: [AuditLine], _ state: inout State) throws {
        guard let handle = state.handle else { throw GatewayError(.storeUnavailable, "\(self.path) is not open") }
        let start = state.isMidLine ? [Self.newline] : []
        (state.isHalfWritten, state.isMidLine) = (true, false)
        try handle.write(contentsOf: Data(start + lines.bytes))
    }

    /// Switches to another file of the same name, if requested and no delivery is incomplete.
    private func changeIfWanted(_ state: inout State) throws {
        // If no file is open, there is nothing to do: the next delivery opens the file by its name anyway.
        guard !state.isHalfWritten, state.handle != nil,
            self.wantsReopening.exchange(false, ordering: .sequentiallyConsistent)
        else { return }
        let newest = state.last
        try self.openFile(&state)
        guard state.last == nil, let newest else { return }
        try self.write([.checkpoint(newest, sink: self.name)], &state)
        try state.handle?.synchronize()
        (state.last, state.isHalfWritten) = (newest, false)
    }

    private func blocking<T: Sendable>(
        _ body: @escaping @Sendable (inout State) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.state.blocking("\(self.path) can't be written", body)
    }

    // MARK: Opening

    private func openFile(_ state: inout State) throws {
        // The file is closed first, because another file may have this name by now.
        try? state.handle?.close()
        state = State()
        let isNew = !FileManager.default.fileExists(atPath: self.path)
        // POSIX takes the path as a pointer, which is valid during the call.
        let descriptor = unsafe open(self.path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let cause = POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
            throw GatewayError(.storeUnavailable, "\(self.path) can't be opened", cause: cause)
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        if isNew { try Self.makeDurable(URL(fileURLWithPath: self.path).deletingLastPathComponent().path) }
        let (checkpoint, end) = try Self.lastCheckpoint(handle)
        let size = try handle.seekToEnd()
        if size > 0 {
            try handle.seek(toOffset: 0)
            state.hasLine = try handle.read(upToCount: Self.blockBytes)?.contains(Self.newline) == true
            try handle.seek(toOffset: size - 1)
            state.isMidLine = try handle.read(upToCount: 1)?.first != Self.newline
        }
        (state.handle, state.last, state.isHalfWritten) = (handle, checkpoint, size > end)
    }

    private static func makeDurable(_ directory: String) throws {
        // POSIX takes the path as a pointer, which is valid during the call.
        let descriptor = unsafe open(directory, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        _ = fsync(descriptor)
    }

    /// Returns the last complete checkpoint and the offset after its newline. The offset is 0 if there is no
    /// checkpoint.
    private static func lastCheckpoint(_ handle: FileHandle) throws -> (SignedCheckpoint?, end: UInt64) {
        var blockEnd = try handle.seekToEnd()
        // The first bytes of the block that was read before. A line may begin in one block and end in the next.
        var following: [UInt8] = []
        while blockEnd > 0 {
            let blockStart = blockEnd > UInt64(self.blockBytes) ? blockEnd - UInt64(self.blockBytes) : 0
            try handle.seek(toOffset: blockStart)
            let block = [UInt8](try handle.read(upToCount: Int(blockEnd - blockStart)) ?? Data())
            let bytes = block + following
            var index = block.count - 1
            while index >= 0 {
                let isLineStart = index > 0 ? bytes[index - 1] == self.newline : blockStart == 0
                if isLineStart, bytes[index...].starts(with: AuditLine.checkpointPrefix) {
                    if let found = try self.checkpoint(handle, at: blockStart + UInt64(index)) { return found }
                }
                index -= 1
            }
            // One more byte is read, to find the newline before a line that begins with this block.
            following = Array(bytes.prefix(AuditLine.checkpointPrefix.count))
            blockEnd = blockStart
            if blockEnd > 0 {
                blockEnd += 1
                following = Array(following.dropFirst())
            }
        }
        return (nil, 0)
    }

    /// Returns the checkpoint of the line at an offset, and the offset after the line. Returns `nil` if the line is
    /// incomplete.
    private static func checkpoint(
        _ handle: FileHandle,
        at offset: UInt64
    ) throws -> (SignedCheckpoint?, end: UInt64)? {
        try handle.seek(toOffset: offset)
        var line = ByteBuffer()
        while let data = try handle.read(upToCount: 1 << 16), !data.isEmpty {
            guard let end = data.firstIndex(of: self.newline) else {
                line.writeBytes(data)
                continue
            }
            line.writeBytes(data[..<end])
            guard case .checkpoint(let checkpoint, _)? = AuditLine(line) else { return nil }
            return (checkpoint, offset + UInt64(line.readableBytes) + 1)
        }
        return nil
    }
}

extension [AuditLine] {
    var bytes: [UInt8] {
        self.flatMap { (line: AuditLine) in [UInt8](line.text.readableBytesView) + [UInt8(ascii: "\n")] }
    }

    var lastCheckpoint: SignedCheckpoint? {
        for case .checkpoint(let checkpoint, _) in self.reversed() { return checkpoint }
        return nil
    }
}

/// A state with a serial queue of its own, so that an operation that hangs blocks nothing else.
final class BlockingState<State: Sendable>: Sendable {
    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "fcm-gateway.audit-sink")

    init(_ state: State) {
        self.state = Mutex(state)
    }

    /// Works on the state on a thread that may block. Rethrows the gateway's errors. Throws any other error as
    /// `storeUnavailable` with the failure's text.
    func blocking<T: Sendable>(
        _ failure: @autoclosure () -> String,
        _ body: @escaping @Sendable (inout State) throws -> T
    ) async throws(GatewayError) -> T {
        do {
            return try await withCheckedThrowingContinuation { continuation in
                self.queue.async {
                    continuation.resume(with: Result { try self.state.withLock { try body(&$0) } })
                }
            }
        } catch let error as GatewayError {
            throw error
        } catch {
            throw GatewayError(.storeUnavailable, failure(), cause: error)
        }
    }
}
