/// A place in a spool, from which its batches are read one after the other.
///
/// A spool begins with ``AuditSpoolFormat/magic``, some random bytes and a seal on both. Each batch is its length in four bytes, the
/// batch itself, and a seal on both and on the seal before.
struct AuditSpoolCursor: Sendable {
    /// What was read.
    enum Step: Sendable {
        /// A batch that the gateway wrote.
        case batch(AuditSpoolBatch)
        /// Nothing more.
        case end
        /// A batch that was not written to its end, as after a kill; nobody was told that it was recorded.
        case torn
        /// Something that the gateway did not write.
        case damaged
    }

    /// The offset of what is read next.
    private(set) var offset = 0
    /// The seal of what was read last; `nil` at the start.
    private(set) var seal: [UInt8]?

    /// Reads one batch and moves behind it.
    ///
    /// - Throws: `storeUnavailable` when the file can't be read.
    mutating func next(in file: any AuditSpoolFile, _ sealer: AuditSpoolSealer) async throws(GatewayError) -> Step {
        if self.seal == nil {
            let head = try await file.read(at: 0, count: AuditSpoolFormat.headByteCount)
            guard !head.isEmpty else { return .end }
            guard head.count == AuditSpoolFormat.headByteCount else { return .torn }
            let start = head.prefix(AuditSpoolFormat.headByteCount - AuditSpoolSealer.byteCount)
            let seal = head.suffix(AuditSpoolSealer.byteCount)
            guard start.starts(with: AuditSpoolFormat.magic), sealer.isGenuine(seal, of: start, after: []) else {
                return head.allSatisfy { $0 == 0 } ? .torn : .damaged
            }
            (self.offset, self.seal) = (head.count, Array(seal))
        }
        guard let previous = self.seal else { return .damaged }
        let lengthBytes = try await file.read(at: self.offset, count: 4)
        guard !lengthBytes.isEmpty else { return .end }
        var lengthRest = lengthBytes[...]
        guard let length = lengthRest.takeNumber(UInt32.self).map({ Int($0) }) else { return .torn }
        guard (1...AuditSpoolFormat.maxBatchBytes).contains(length) else {
            // A file's end may read as zeros after the power went.
            return try await self.isZero(file) ? .torn : .damaged
        }
        let rest = try await file.read(at: self.offset + 4, count: length + AuditSpoolSealer.byteCount)
        guard rest.count == length + AuditSpoolSealer.byteCount else { return .torn }
        let seal = rest.suffix(AuditSpoolSealer.byteCount)
        guard sealer.isGenuine(seal, of: lengthBytes + rest.prefix(length), after: previous),
            let batch = AuditSpoolBatch(Array(rest.prefix(length)))
        else { return .damaged }
        (self.offset, self.seal) = (self.offset + 4 + rest.count, Array(seal))
        return .batch(batch)
    }

    /// Whether nothing but zeros follows.
    private func isZero(_ file: any AuditSpoolFile) async throws(GatewayError) -> Bool {
        var offset = self.offset
        while true {
            let bytes = try await file.read(at: offset, count: 1 << 16)
            guard !bytes.isEmpty else { return true }
            guard bytes.allSatisfy({ $0 == 0 }) else { return false }
            offset += bytes.count
        }
    }
}
