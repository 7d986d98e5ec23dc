import Crypto
import Foundation
import GatewayCore
import Synchronization

/// The second sink as a file of JSON lines that is only ever appended to.
///
/// What was broken off stays where it is: a signed line says that it follows again. Whoever moves the file away asks for
/// another with ``reopen()``; the new one begins with the last checkpoint of the old.
final class AuditSinkFile: AuditSink {
    private struct State {
        var handle: FileHandle?
        /// The last checkpoint that was written whole.
        var last: SignedCheckpoint?
        /// Whether something stands behind it that no checkpoint has yet.
        var isHalfWritten = false
    }

    /// How much of the file is looked at at once, from its end.
    private static let blockBytes = 1 << 20

    private let path: String
    private let signer: AuditSigner
    private let key: String
    /// Held while the file is worked on, by a thread that may wait.
    private let state = BlockingState(State())
    private let wantsReopening = Atomic(false)

    /// A file, not opened.
    ///
    /// - Parameters:
    ///   - path: where it is; it is made when it is not there.
    ///   - signer: signs that something was broken off.
    init(path: String, signer: AuditSigner) {
        self.path = path
        self.signer = signer
        self.key = signer.publicKey.base64
    }

    /// Has the file opened anew by its name: now, or when the checkpoint that is being written is complete.
    func reopen() async {
        self.wantsReopening.store(true, ordering: .sequentiallyConsistent)
        // What fails here fails again with the next delivery, and is told then.
        try? await self.blocking { try self.changeIfWanted(&$0) }
    }

    func resume() async throws(GatewayError) -> SignedCheckpoint? {
        try await self.blocking { state in
            try self.openFile(&state)
            return state.last
        }
    }

    func write(_ lines: [AuditSinkLine], isWhole: Bool) async throws(GatewayError) {
        try await self.blocking { state in
            try self.changeIfWanted(&state)
            try self.write(lines, &state)
            guard isWhole else { return }
            try state.handle?.synchronize()
            state.last = lines.compactMap(\.checkpoint).last ?? state.last
            state.isHalfWritten = false
            try self.changeIfWanted(&state)
        }
    }

    private func write(_ lines: [AuditSinkLine], _ state: inout State) throws {
        guard let handle = state.handle else { throw GatewayError(.storeUnavailable, "\(self.path) is not open") }
        state.isHalfWritten = true
        try handle.write(contentsOf: Data(lines.flatMap { AuditSinkText.line($0, key: self.key) }))
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
        try self.write([.checkpoint(newest)], &state)
        try state.handle?.synchronize()
        (state.last, state.isHalfWritten) = (newest, false)
    }

    private func blocking<T: Sendable>(
        _ body: @escaping @Sendable (inout State) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.state.blocking("\(self.path) can't be written", body)
    }

    // MARK: Opening

    /// Opens the file, finds its last checkpoint, and marks what was broken off at its end.
    private func openFile(_ state: inout State) throws {
        // Closed first: the file of that name may be another by now.
        try? state.handle?.close()
        state = State()
        let isNew = !FileManager.default.fileExists(atPath: self.path)
        // POSIX takes the path as a pointer, valid during the call.
        let descriptor = unsafe open(self.path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw GatewayError(
                .storeUnavailable,
                "\(self.path) can't be opened",
                cause: POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
            )
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        if isNew { try Self.makeDurable(URL(fileURLWithPath: self.path).deletingLastPathComponent().path) }
        let (checkpoint, end) = try Self.lastCheckpoint(handle)
        let size = try handle.seekToEnd()
        if size > 0, size == end - 1 {
            // All of the line was written but its end.
            try handle.write(contentsOf: Data([UInt8(ascii: "\n")]))
        } else if size > end {
            try self.mark(handle, after: checkpoint?.number ?? 0, from: end, to: size)
        }
        (state.handle, state.last) = (handle, checkpoint)
    }

    /// Says that what stands since the last checkpoint follows again.
    private func mark(_ handle: FileHandle, after number: Int, from start: UInt64, to end: UInt64) throws {
        var digest = SHA256()
        var last: UInt8?
        try handle.seek(toOffset: start)
        var left = end - start
        while left > 0, let data = try handle.read(upToCount: Int(min(left, UInt64(Self.blockBytes)))), !data.isEmpty {
            digest.update(data: data)
            last = data.last
            left -= UInt64(data.count)
        }
        var skipped = Int(end - start)
        let newline = [UInt8(ascii: "\n")]
        if last != newline[0] {
            try handle.write(contentsOf: Data(newline))
            digest.update(data: newline)
            skipped += 1
        }
        var resumption = AuditSinkResumption(
            after: number,
            skipped: skipped,
            digest: Array(digest.finalize()),
            signature: []
        )
        resumption.signature = try self.signer.sign(resumption.text)
        try handle.write(contentsOf: Data(AuditSinkText.line(resumption)))
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
                let isLineStart = index > 0 ? bytes[index - 1] == UInt8(ascii: "\n") : blockStart == 0
                if isLineStart, bytes[index...].starts(with: AuditSinkText.checkpointPrefix) {
                    if let found = try self.checkpoint(handle, at: blockStart + UInt64(index)) { return found }
                }
                index -= 1
            }
            // One byte more, so that the newline before a line that begins with this block is seen.
            following = Array(bytes.prefix(AuditSinkText.checkpointPrefix.count))
            blockEnd = blockStart
            if blockEnd > 0 {
                blockEnd += 1
                following = Array(following.dropFirst())
            }
        }
        return (nil, 0)
    }

    /// The checkpoint of the line at an offset; `nil` when the line is not whole.
    private static func checkpoint(
        _ handle: FileHandle,
        at offset: UInt64
    ) throws -> (SignedCheckpoint?, end: UInt64)? {
        try handle.seek(toOffset: offset)
        var line: [UInt8] = []
        while let data = try handle.read(upToCount: 1 << 16), !data.isEmpty {
            if let end = data.firstIndex(of: UInt8(ascii: "\n")) {
                line += data[..<end]
                guard case .line(.checkpoint(let checkpoint), _) = AuditSinkText.content(line) else { return nil }
                return (checkpoint, offset + UInt64(line.count) + 1)
            }
            line += data
        }
        guard case .line(.checkpoint(let checkpoint), _) = AuditSinkText.content(line) else { return nil }
        return (checkpoint, offset + UInt64(line.count) + 1)
    }
}
