import GatewayCore
import Testing

@testable import GatewayStorage

struct AuditCodecTests {
    private static let sample = AuditFixtures.record(4)

    private func encode(_ record: AuditRecord) -> [UInt8] {
        var bytes: [UInt8] = []
        AuditCodec.encode(record, to: &bytes)
        return bytes
    }

    private func decode(_ bytes: [UInt8]) -> AuditRecord? {
        AuditCodec.decode(bytes, time: Self.sample.time, tenant: Self.sample.tenant)
    }

    @Test("Nil and empty texts stay different")
    func absence() {
        var record = Self.sample
        record.object = nil
        record.code = ""
        record.targets = []
        record.traceID = nil
        #expect(self.decode(self.encode(record)) == record)
    }

    @Test("Numbers of every size are decoded unchanged", arguments: [0, 1, 127, 128, 16_383, 16_384, .max, -1, .min])
    func numbers(number: Int) {
        var record = Self.sample
        record.recipients = number
        #expect(self.decode(self.encode(record)) == record)
    }

    @Test(
        "A tenant's uid is decoded unchanged, and stored where SQL reads it",
        arguments: [0, 1, 0x8000_0000_0000_0001, .max]
    )
    func tenantUID(uid: UInt64) {
        var record = Self.sample
        record.tenantUID = uid
        let bytes = self.encode(record)
        #expect(self.decode(bytes) == record)
        #expect(Array(bytes[AuditCodec.tenantUIDRange]) == AuditCodec.bytes(of: uid))
        #expect(AuditChain.Entry(record).tenantUID == uid)
    }

    @Test("Truncated bytes and trailing bytes are refused")
    func wrongLength() {
        let bytes = self.encode(Self.sample)
        for count in 0..<bytes.count {
            #expect(self.decode(Array(bytes.prefix(count))) == nil, "\(count) bytes")
        }
        #expect(self.decode(bytes + [0]) == nil)
    }

    @Test("Bytes with a changed bit never decode to the same record")
    func changedBytes() {
        let bytes = self.encode(Self.sample)
        for index in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << UInt8(bit)
                #expect(self.decode(changed) != Self.sample, "bit \(bit) of byte \(index)")
            }
        }
    }

    @Test("A length that is encoded in more bytes than needed, or too large, is refused")
    func longerForms() {
        var record = Self.sample
        record.principal = ""
        let bytes = self.encode(record)
        let place = AuditCodec.tenantUIDRange.upperBound
        #expect(bytes[place] == 1)
        #expect(self.decode(Array(bytes[..<place] + [0x81, 0x00] + bytes[(place + 1)...])) == nil)
        let huge = Array(bytes[..<place]) + Array(repeating: 0xFF, count: 9) + [0x7F] + bytes[(place + 1)...]
        #expect(self.decode(huge) == nil)
    }
}
