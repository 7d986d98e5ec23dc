import Crypto

/// A file in which audit records wait for a store that fails; its calls throw `storeUnavailable`.
///
/// One writer at a time uses it; what was written may be read meanwhile.
package protocol AuditSpoolFile: Sendable {
    /// Its size in bytes.
    func size() async throws(GatewayError) -> Int

    /// Bytes from an offset on; fewer at the end.
    func read(at offset: Int, count: Int) async throws(GatewayError) -> [UInt8]

    /// Writes bytes from an offset on and returns when they are on the disk; where it throws, there may be something
    /// behind the offset, which is to be dropped.
    func write(_ bytes: [UInt8], at offset: Int) async throws(GatewayError)

    /// Drops everything from an offset on.
    func cut(to size: Int) async throws(GatewayError)

    /// Moves the content to a file beside it, with a suffix to its name, and continues with an empty one. Returns the
    /// path of the content.
    func setAside(_ suffix: String) async throws(GatewayError) -> String
}

/// Keeps the records that the store does not take, in the places that they have in the chain already.
///
/// Since a record's place is its identity, it can be handed to the store any number of times. A spool begins with
/// ``magic``, some random bytes, by which no batch of one spool can pass for one of another, and a seal on both. Each
/// batch is its length in four bytes, highest first, the batch itself, and a seal on both and on the seal before. Seals
/// are HMACs under a key derived from the audit key.
package struct AuditSpool: Sendable {
    private static let magic = Array("fcm-gateway audit spool 1\n".utf8)
    private static let nonceByteCount = 16
    private static let sealByteCount = 32
    /// Everything before the first batch.
    static let headByteCount = Self.magic.count + Self.nonceByteCount + Self.sealByteCount
    /// The bytes at which a batch is full; the last record may reach beyond it.
    private static let batchBytes = 1 << 20
    /// The bound on a batch, as a reader sees it.
    private static let maxBatchBytes = 1 << 26

    /// A place between two batches, at which the spool is read or written.
    struct Cursor: Sendable, Hashable {
        fileprivate(set) var offset = 0
        /// The seal of what is before it; empty at the start.
        fileprivate(set) var seal: [UInt8] = []
        /// True if a failed write may have left bytes behind this place.
        fileprivate(set) var hasRemains = false
    }

    /// Records in the places that they have in a writer's chain, on their way to the store.
    struct Batch: Sendable, Hashable {
        /// The chain's end before them.
        let base: AuditChain
        let entries: [AuditChain.Entry]

        /// The records with their places and hashes.
        var records: [ChainedAuditRecord] {
            var chain = self.base
            return self.entries.map { chain.append($0) }
        }
    }

    /// One step of reading a spool.
    enum Step: Sendable {
        case batch(Batch)
        /// Nothing more.
        case end
        /// A batch that was not written to its end, as after a kill; no caller was told that it was recorded.
        case torn
        /// Something that the gateway did not write.
        case damaged
    }

    /// The content of a spool at a start.
    package struct Finding: Sendable, Hashable {
        /// The writer of its records; `nil` if it holds none.
        package var writer: Int?
        /// The number of its genuine records.
        package var records = 0
        /// True if the last batch was not written to its end.
        package var isTorn = false
        /// True if the gateway did not write all of it.
        package var isDamaged = false
    }

    let file: any AuditSpoolFile
    private let key: SymmetricKey
    private let maxBytes: Int

    package init(file: any AuditSpoolFile, auditKey: Secret, maxBytes: Int) {
        (self.file, self.maxBytes) = (file, maxBytes)
        self.key = auditKey.symmetricKey.derived(for: "fcm-gateway audit spool 1")
    }

    // MARK: Writing

    /// Writes records that follow a chain's end behind the spool's; the chain's end behind them. They are on the disk
    /// when it returns.
    ///
    /// Throws `storeUnavailable` when they do not fit or can't be written; then nothing was added.
    func append(
        _ entries: [AuditChain.Entry],
        after base: AuditChain,
        to end: inout Cursor
    ) async throws(GatewayError) -> AuditChain {
        guard !entries.isEmpty else { return base }
        var bytes: [UInt8] = []
        var seal = end.seal
        if end.offset == 0 {
            bytes = Self.magic + Secret(randomBytes: Self.nonceByteCount).revealBytes()
            seal = self.seal(of: bytes, after: [])
            bytes += seal
        }
        var chain = base
        for run in Self.runs(of: entries) {
            let payload = AuditCodec.encode(run, after: chain)
            var frame: [UInt8] = []
            frame.reserveCapacity(payload.count + 4)
            frame.append(bigEndian: UInt32(payload.count))
            frame += payload
            seal = self.seal(of: frame, after: seal)
            bytes += frame
            bytes += seal
            for entry in run { _ = chain.append(entry) }
        }
        guard end.offset + bytes.count <= self.maxBytes else {
            throw GatewayError(.storeUnavailable, "The audit's spool is full")
        }
        // A shorter batch in front of the remains of a longer one would look like tampering.
        if end.hasRemains { try await self.file.cut(to: end.offset) }
        end.hasRemains = true
        try await self.file.write(bytes, at: end.offset)
        end = Cursor(offset: end.offset + bytes.count, seal: seal)
        return chain
    }

    /// Parts of records that fit a batch each.
    private static func runs(of entries: [AuditChain.Entry]) -> [ArraySlice<AuditChain.Entry>] {
        var runs: [ArraySlice<AuditChain.Entry>] = []
        var (start, size) = (0, 0)
        for index in entries.indices {
            size += entries[index].byteCount
            guard size >= self.batchBytes else { continue }
            runs.append(entries[start...index])
            (start, size) = (index + 1, 0)
        }
        if start < entries.count { runs.append(entries[start...]) }
        return runs
    }

    private func seal(of bytes: some Sequence<UInt8>, after previous: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: previous + bytes, using: self.key))
    }

    // MARK: Reading

    /// Reads one batch and moves behind it.
    func next(from cursor: inout Cursor) async throws(GatewayError) -> Step {
        if cursor.offset == 0 {
            let head = try await self.file.read(at: 0, count: Self.headByteCount)
            guard !head.isEmpty else { return .end }
            guard head.count == Self.headByteCount else { return .torn }
            let (start, seal) = (head.dropLast(Self.sealByteCount), head.suffix(Self.sealByteCount))
            guard start.starts(with: Self.magic), self.isGenuine(seal, of: start, after: []) else {
                return head.allSatisfy { $0 == 0 } ? .torn : .damaged
            }
            cursor = Cursor(offset: head.count, seal: Array(seal))
        }
        let prefix = try await self.file.read(at: cursor.offset, count: 4)
        guard !prefix.isEmpty else { return .end }
        guard prefix.count == 4 else { return .torn }
        let length = prefix.reduce(0) { $0 << 8 | Int($1) }
        guard (1...Self.maxBatchBytes).contains(length) else {
            // A file's end may read as zeros after the power went.
            return try await self.isZero(from: cursor.offset) ? .torn : .damaged
        }
        let rest = try await self.file.read(at: cursor.offset + 4, count: length + Self.sealByteCount)
        guard rest.count == length + Self.sealByteCount else { return .torn }
        let (payload, seal) = (rest.prefix(length), rest.suffix(Self.sealByteCount))
        guard self.isGenuine(seal, of: prefix + payload, after: cursor.seal),
            let (base, entries) = AuditCodec.decode(entriesAfterChain: payload)
        else { return .damaged }
        cursor = Cursor(offset: cursor.offset + 4 + rest.count, seal: Array(seal))
        return .batch(Batch(base: base, entries: entries))
    }

    private func isGenuine(_ seal: ArraySlice<UInt8>, of bytes: some Sequence<UInt8>, after previous: [UInt8]) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(Array(seal), authenticating: previous + bytes, using: self.key)
    }

    private func isZero(from start: Int) async throws(GatewayError) -> Bool {
        var offset = start
        while true {
            let bytes = try await self.file.read(at: offset, count: 1 << 16)
            guard !bytes.isEmpty else { return true }
            guard bytes.allSatisfy({ $0 == 0 }) else { return false }
            offset += bytes.count
        }
    }

    /// Looks through a spool that an earlier process left.
    package func inspect() async throws(GatewayError) -> Finding {
        var (finding, cursor) = (Finding(), Cursor())
        while true {
            switch try await self.next(from: &cursor) {
            case .batch(let batch):
                finding.writer = finding.writer ?? batch.base.writer
                finding.records += batch.entries.count
                continue
            case .end: break
            case .torn: finding.isTorn = true
            case .damaged: finding.isDamaged = true
            }
            return finding
        }
    }
}
