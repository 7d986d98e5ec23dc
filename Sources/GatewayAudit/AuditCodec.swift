/// Records as bytes: what is hashed, stored and spooled.
///
/// A body is a record but for its time and tenant. The tenant's uid stands in front, highest byte first, where SQL
/// finds it as well. Each text is preceded by its length plus one, and a zero stands for an absent one; numbers and
/// lengths are in groups of seven bits, lowest first. The two numbers of a chain's first record stand at the end; other
/// records have nothing there. Every record has exactly one body, and decoding refuses any other, so that a changed
/// byte is never overlooked.
package enum AuditCodec {
    /// Rises when the layout changes.
    private static let version: UInt8 = 1
    /// The place of the tenant's uid.
    package static let tenantUIDRange = 1..<9

    package static func encode(_ record: borrowing AuditRecord, to bytes: inout [UInt8]) {
        bytes.append(self.version)
        bytes.append(bigEndian: record.tenantUID)
        self.put(record.principal, to: &bytes)
        self.put(record.method, to: &bytes)
        self.put(record.action, to: &bytes)
        self.put(record.targetKind, to: &bytes)
        self.put(UInt64(record.targets.count) + 1, to: &bytes)
        bytes.append(contentsOf: record.targets)
        self.put(record.object, to: &bytes)
        self.put(record.results.count, to: &bytes)
        for result in record.results {
            self.put(result.code, to: &bytes)
            self.put(result.fcmMessageID, to: &bytes)
        }
        self.put(record.recipients, to: &bytes)
        self.put(record.accepted, to: &bytes)
        self.put(record.bytes, to: &bytes)
        self.put(record.outcome.rawValue, to: &bytes)
        self.put(record.code, to: &bytes)
        self.put(record.upstreamCode, to: &bytes)
        self.put(record.fcmMessageID, to: &bytes)
        self.put(record.messageID, to: &bytes)
        self.put(record.requestID, to: &bytes)
        self.put(record.traceID, to: &bytes)
        if record.afterCheckpoint != 0 || record.continuesWriter != 0 {
            self.put(record.afterCheckpoint, to: &bytes)
            self.put(record.continuesWriter, to: &bytes)
        }
    }

    /// The record of a body; `nil` for bytes that no record has.
    package static func decode(_ bytes: [UInt8], time: Timestamp, tenant: String?) -> AuditRecord? {
        var reader = Reader(rest: bytes[...])
        guard let record = try? reader.record(time: time, tenant: tenant), reader.rest.isEmpty else { return nil }
        // One comparison in place of a check of every length and number for its shortest form.
        var again: [UInt8] = []
        again.reserveCapacity(bytes.count)
        self.encode(record, to: &again)
        return again == bytes ? record : nil
    }

    package static func bytes(of uid: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: uid)
        return bytes
    }

    /// Writes what is hashed before a body: the record's place, time and tenant.
    static func encodeHeader(of entry: AuditChain.Entry, writer: Int, sequence: Int, to bytes: inout [UInt8]) {
        self.put(writer, to: &bytes)
        self.put(sequence, to: &bytes)
        self.putOrigin(of: entry, to: &bytes)
    }

    private static func putOrigin(of entry: AuditChain.Entry, to bytes: inout [UInt8]) {
        self.put(Int(entry.time.microseconds), to: &bytes)
        self.put(entry.tenant, to: &bytes)
    }

    /// Records that follow a chain's end, without the places and hashes that they have by that.
    static func encode(_ entries: some Collection<AuditChain.Entry>, after base: AuditChain) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(64 + entries.reduce(0) { $0 + $1.byteCount })
        self.put(base.writer, to: &bytes)
        self.put(base.sequence, to: &bytes)
        bytes.append(contentsOf: base.hash)
        self.put(entries.count, to: &bytes)
        for entry in entries {
            self.putOrigin(of: entry, to: &bytes)
            self.put(entry.body.count, to: &bytes)
            bytes.append(contentsOf: entry.body)
        }
        return bytes
    }

    static func decode(entriesAfterChain bytes: ArraySlice<UInt8>) -> (base: AuditChain, entries: [AuditChain.Entry])? {
        var reader = Reader(rest: bytes)
        guard let decoded = try? reader.entries(), reader.rest.isEmpty else { return nil }
        return decoded
    }

    private static func put(_ text: String?, to bytes: inout [UInt8]) {
        guard let text else {
            bytes.append(0)
            return
        }
        self.put(UInt64(text.utf8.count) + 1, to: &bytes)
        bytes.append(utf8: text)
    }

    private static func put(_ number: Int, to bytes: inout [UInt8]) {
        self.put(UInt64(bitPattern: Int64(number)), to: &bytes)
    }

    private static func put(_ number: UInt64, to bytes: inout [UInt8]) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    /// Takes fields off the front.
    private struct Reader {
        /// The bytes are none that the gateway writes.
        struct Damage: Error {}

        private(set) var rest: ArraySlice<UInt8>

        mutating func entries() throws(Damage) -> (base: AuditChain, entries: [AuditChain.Entry]) {
            let (writer, sequence) = (try self.integer(), try self.integer())
            let base = AuditChain(writer: writer, sequence: sequence, hash: Array(try self.take(32)))
            var entries: [AuditChain.Entry] = []
            let count = try self.number()
            for _ in 0..<count {
                let time = Timestamp(microseconds: Int64(try self.integer()))
                let tenant = try self.optionalText()
                let length = try self.number()
                let entry = AuditChain.Entry(time: time, tenant: tenant, body: Array(try self.take(length)))
                guard entry.isReadable else { throw Damage() }
                entries.append(entry)
            }
            return (base, entries)
        }

        mutating func record(time: Timestamp, tenant: String?) throws(Damage) -> AuditRecord {
            guard try self.take(1).first == AuditCodec.version else { throw Damage() }
            var record = AuditRecord(tenant: tenant, at: time)
            record.tenantUID = try self.take(8).reduce(0) { $0 << 8 | UInt64($1) }
            record.principal = try self.text()
            record.method = try self.text()
            record.action = try self.text()
            record.targetKind = try self.text()
            let length = try self.number()
            guard length > 0 else { throw Damage() }
            record.targets = Array(try self.take(length - 1))
            record.object = try self.optionalText()
            let count = try self.number()
            for _ in 0..<count {
                let (code, fcmMessageID) = (try self.optionalText(), try self.optionalText())
                record.results.append(AuditRecord.TargetResult(code: code, fcmMessageID: fcmMessageID))
            }
            record.recipients = try self.integer()
            record.accepted = try self.integer()
            record.bytes = try self.integer()
            guard let outcome = AuditRecord.Outcome(rawValue: try self.text()) else { throw Damage() }
            record.outcome = outcome
            record.code = try self.optionalText()
            record.upstreamCode = try self.optionalText()
            record.fcmMessageID = try self.optionalText()
            record.messageID = try self.optionalText()
            record.requestID = try self.text()
            record.traceID = try self.optionalText()
            if !self.rest.isEmpty {
                record.afterCheckpoint = try self.integer()
                record.continuesWriter = try self.integer()
            }
            return record
        }

        private mutating func number() throws(Damage) -> UInt64 {
            var number: UInt64 = 0
            for shift in stride(from: UInt64(0), through: 63, by: 7) {
                guard let byte = self.rest.popFirst() else { throw Damage() }
                number |= UInt64(byte & 0x7F) << shift
                if byte & 0x80 == 0 { return number }
            }
            throw Damage()
        }

        private mutating func integer() throws(Damage) -> Int {
            Int(truncatingIfNeeded: try self.number())
        }

        private mutating func optionalText() throws(Damage) -> String? {
            let length = try self.number()
            if length == 0 { return nil }
            guard let text = String(validating: try self.take(length - 1), as: UTF8.self) else { throw Damage() }
            return text
        }

        private mutating func text() throws(Damage) -> String {
            guard let text = try self.optionalText() else { throw Damage() }
            return text
        }

        private mutating func take(_ count: UInt64) throws(Damage) -> ArraySlice<UInt8> {
            guard let count = Int(exactly: count), count <= self.rest.count else { throw Damage() }
            defer { self.rest = self.rest.dropFirst(count) }
            return self.rest.prefix(count)
        }
    }
}
