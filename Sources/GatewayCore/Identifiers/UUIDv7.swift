import Synchronization

/// Makes time-ordered identifiers: UUID version 7 (RFC 9562, 5.7).
package enum UUIDv7 {
    /// Where each byte's first digit stands.
    private static let positions = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]
    private static let randomness = Mutex(RandomReserve())

    /// A new identifier in its usual text form, 36 lower-case characters.
    package static func generate(at time: Timestamp) -> String {
        let milliseconds = UInt64(truncatingIfNeeded: time.milliseconds)
        let random = self.randomness.withLock { ($0.next(), $0.next()) }
        let high = milliseconds << 16 | 0x7000 | random.0 & 0x0FFF
        let low = 0x8000_0000_0000_0000 | random.1 & 0x3FFF_FFFF_FFFF_FFFF

        // Unsafe: the string's own bytes are written, each of the 36 once.
        return unsafe String(unsafeUninitializedCapacity: 36) { text in
            for hyphen in [8, 13, 18, 23] { unsafe text[hyphen] = UInt8(ascii: "-") }
            for index in 0..<16 {
                let word = index < 8 ? high : low
                let byte = UInt8(truncatingIfNeeded: word >> UInt64(56 - index % 8 * 8))
                let position = Self.positions[index]
                unsafe text[position] = Hex.digits[Int(byte >> 4)]
                unsafe text[position + 1] = Hex.digits[Int(byte & 0xF)]
            }
            return 36
        }
    }
}
