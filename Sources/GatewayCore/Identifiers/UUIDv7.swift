import Synchronization

/// Makes time-ordered identifiers: UUID version 7 (RFC 9562, 5.7).
package enum UUIDv7 {
    private static let hexDigits = Array("0123456789abcdef".utf8)
    private static let randomness = Mutex(RandomReserve())

    /// A new identifier in its usual text form, 36 lower-case characters.
    package static func generate(at time: Timestamp) -> String {
        let milliseconds = UInt64(truncatingIfNeeded: time.milliseconds)
        let random = self.randomness.withLock { ($0.next(), $0.next()) }
        let high = milliseconds << 16 | 0x7000 | random.0 & 0x0FFF
        let low = 0x8000_0000_0000_0000 | random.1 & 0x3FFF_FFFF_FFFF_FFFF

        var text: [UInt8] = []
        text.reserveCapacity(36)
        for digit in 0..<32 {
            if digit == 8 || digit == 12 || digit == 16 || digit == 20 { text.append(UInt8(ascii: "-")) }
            let half = digit < 16 ? high : low
            let nibble = half >> UInt64(60 - digit % 16 * 4) & 0xF
            text.append(Self.hexDigits[Int(nibble)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}
