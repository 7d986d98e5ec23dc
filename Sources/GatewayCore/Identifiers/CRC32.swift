/// The CRC-32 of zip and Ethernet (reflected polynomial 0xEDB88320).
package enum CRC32 {
    private static let table: [UInt32] = (0..<256)
        .map { index in
            (0..<8)
                .reduce(UInt32(index)) { value, _ in
                    value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1
                }
        }

    /// The checksum of some bytes.
    package static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
        var crc = UInt32.max
        for byte in bytes {
            crc = crc >> 8 ^ Self.table[Int((crc ^ UInt32(byte)) & 0xFF)]
        }
        return ~crc
    }
}
