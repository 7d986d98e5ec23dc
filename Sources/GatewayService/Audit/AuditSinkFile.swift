import Dispatch
import Foundation
import GatewayCore
import NIOCore
import Synchronization

/// The second sink as a file of JSON lines that is only ever appended to.
///
/// What was broken off stays where it is, and the feeder brings it again. Whoever moves the file away asks for another with
/// ``reopen()``; the new one begins with the last checkpoint of the old.
final class AuditSinkFile: AuditSink {
    private struct State {
        var handle: FileHandle?
        /// The last checkpoint that was written whole.
        var last: SignedCheckpoint?
        /// Whether something stands behind it that no checkpoint has yet.
        var isHalfWritten = false
        var isMidLine = false
        var hasLine = false
    }

    /// How much of the file is looked at at once, from its end.
    private static let blockBytes = 1 << 20
    private static let newline = UInt8(ascii: "\n")

    private let path: String
    private let name: String
    private let state = BlockingState(State())
    private let wantsReopening = Atomic(false)

    /// A file that is made when it is not there; not opened.
    init(path: String, name: String) {
        (self.path, self.name) = (path, name)
    }

    /// Has the file opened anew by its name: now, or when the checkpoint that is being written is complete.
    func reopen() async {
        self.wantsReopening.store(true, ordering: .sequentiallyConsistent)
        // What fails here fails again with the next delivery, and is told then.
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

    /// Goes on in another file of the same name, if that is wanted and nothing is half written.
    private func changeIfWanted(_ state: inout State) throws {
        // A file that is not open is opened by its name in any case.
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
        // Closed first: the file of that name may be another by now.
        try? state.handle?.close()
        state = State()
        let isNew = !FileManager.default.fileExists(atPath: self.path)
        // POSIX takes the path as a pointer, valid during the call.
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
        // POSIX takes the path as a pointer, valid during the call.
        let descriptor = unsafe open(directory, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        _ = fsync(descriptor)
    }

    /// The last whole line of a checkpoint, and where it ends with its newline; 0 when there is none.
    private static func lastCheckpoint(_ handle: FileHandle) throws -> (SignedCheckpoint?, end: UInt64) {
        var blockEnd = try handle.seekToEnd()
        // The first bytes of the block that was looked at before: a line's beginning may lie across two blocks.
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
            // One byte more, so that the newline before a line that begins with this block is seen.
            following = Array(bytes.prefix(AuditLine.checkpointPrefix.count))
            blockEnd = blockStart
            if blockEnd > 0 {
                blockEnd += 1
                following = Array(following.dropFirst())
            }
        }
        return (nil, 0)
    }

    /// The checkpoint of the line at an offset, and where that ends; `nil` when the line is not whole.
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

/// A state that is worked on by a queue of its own, one after the other: work that hangs keeps nobody else waiting.
final class BlockingState<State: Sendable>: Sendable {
    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "fcm-gateway.audit-sink")

    init(_ state: State) {
        self.state = Mutex(state)
    }

    /// Works on the state, on a thread that may wait; throws errors of the gateway as they are, any other as
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
