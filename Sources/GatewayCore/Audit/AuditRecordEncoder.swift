/// Writes a record as the bytes that are hashed: every field in a fixed order, texts and bytes preceded by their length,
/// absent ones marked, so that no two records share an encoding.
struct AuditRecordEncoder {
    private(set) var bytes: [UInt8] = []

    init() {
        self.bytes.reserveCapacity(384)
    }

    mutating func encode(_ record: AuditRecord, writer: Int, sequence: Int) {
        self.put(1)
        self.put(writer)
        self.put(sequence)
        self.put(Int(record.time.microseconds))
        self.put(record.tenant)
        self.put(record.principal)
        self.put(record.method)
        self.put(record.action)
        self.put(record.targetKind)
        self.put(record.targets)
        self.put(record.object)
        self.put(record.recipients)
        self.put(record.accepted)
        self.put(record.bytes)
        self.put(record.outcome.rawValue)
        self.put(record.code)
        self.put(record.upstreamCode)
        self.put(record.fcmMessageID)
        self.put(record.messageID)
        self.put(record.requestID)
        self.put(record.traceID)
    }

    private mutating func put(_ number: Int) {
        var rest = UInt64(bitPattern: Int64(number))
        for _ in 0..<8 {
            self.bytes.append(UInt8(truncatingIfNeeded: rest))
            rest >>= 8
        }
    }

    private mutating func put(_ bytes: [UInt8]) {
        self.put(bytes.count)
        self.bytes.append(contentsOf: bytes)
    }

    private mutating func put(_ text: String?) {
        guard let text else {
            self.put(-1)
            return
        }
        self.put(text.utf8.count)
        self.bytes.append(contentsOf: text.utf8)
    }
}
