/// Records in the places that they have in a writer's chain, on their way to the store.
struct AuditSpoolBatch: Sendable, Hashable {
    /// The chain's end before them.
    let base: AuditChain
    /// The records, in order.
    let entries: [AuditEntry]

    /// The records with their places and hashes.
    var records: [ChainedAuditRecord] {
        var chain = self.base
        return self.entries.map { chain.append($0) }
    }

    var encoded: [UInt8] { AuditCodec.encode(self.entries, after: self.base) }

    init(base: AuditChain, entries: [AuditEntry]) {
        (self.base, self.entries) = (base, entries)
    }

    /// The batch that some bytes stand for; `nil` for any others.
    init?(_ bytes: [UInt8]) {
        guard let (base, entries) = AuditCodec.decode(entriesAfterChain: bytes) else { return nil }
        self.init(base: base, entries: entries)
    }
}

extension [UInt8] {
    /// Appends a number, highest byte first.
    mutating func append<Number: FixedWidthInteger & UnsignedInteger>(number: Number) {
        for shift in stride(from: Number.bitWidth - 8, through: 0, by: -8) {
            self.append(UInt8(truncatingIfNeeded: number >> Number(shift)))
        }
    }
}

extension ArraySlice<UInt8> {
    /// Takes bytes off the front; `nil` when there are fewer.
    mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard count <= self.count else { return nil }
        defer { self = self.dropFirst(count) }
        return self.prefix(count)
    }

    /// Takes a number off the front, highest byte first; `nil` when there are fewer bytes.
    mutating func takeNumber<Number: FixedWidthInteger & UnsignedInteger>(_: Number.Type) -> Number? {
        self.take(Number.bitWidth / 8)?.reduce(0) { $0 << 8 | Number($1) }
    }
}
