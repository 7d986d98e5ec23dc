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
}

extension AuditSpoolBatch {
    private static let noTenant = UInt32.max

    /// The batch as bytes: numbers big-endian and of fixed width, texts and bodies preceded by their lengths.
    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(64 + self.entries.reduce(0) { $0 + $1.byteCount })
        bytes.append(number: UInt64(self.base.writer))
        bytes.append(number: UInt64(self.base.sequence))
        bytes.append(contentsOf: self.base.hash)
        bytes.append(number: UInt32(self.entries.count))
        for entry in self.entries {
            bytes.append(number: UInt64(bitPattern: entry.time.microseconds))
            if let tenant = entry.tenant {
                bytes.append(number: UInt32(tenant.utf8.count))
                bytes.append(contentsOf: tenant.utf8)
            } else {
                bytes.append(number: Self.noTenant)
            }
            bytes.append(number: UInt32(entry.body.count))
            bytes.append(contentsOf: entry.body)
        }
        return bytes
    }

    /// The batch that some bytes stand for; `nil` for any others.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        guard let writer = rest.takeNumber(UInt64.self).flatMap({ Int(exactly: $0) }),
            let sequence = rest.takeNumber(UInt64.self).flatMap({ Int(exactly: $0) }),
            let hash = rest.take(32), let count = rest.takeNumber(UInt32.self)
        else { return nil }
        var entries: [AuditEntry] = []
        for _ in 0..<count {
            guard let time = rest.takeNumber(UInt64.self), let tenantLength = rest.takeNumber(UInt32.self) else {
                return nil
            }
            var tenant: String?
            if tenantLength != Self.noTenant {
                tenant = rest.take(Int(tenantLength)).flatMap { String(validating: $0, as: UTF8.self) }
                if tenant == nil { return nil }
            }
            guard let body = rest.takeNumber(UInt32.self).flatMap({ rest.take(Int($0)) }),
                let entry = AuditEntry(
                    time: Timestamp(microseconds: Int64(bitPattern: time)),
                    tenant: tenant,
                    body: Array(body)
                )
            else { return nil }
            entries.append(entry)
        }
        guard rest.isEmpty else { return nil }
        self.init(base: AuditChain(writer: writer, sequence: sequence, hash: Array(hash)), entries: entries)
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
