extension StringProtocol {
    /// Compares with another string byte by byte, ASCII letters without their case.
    func equalsIgnoringCase(_ other: some StringProtocol) -> Bool {
        guard self.utf8.count == other.utf8.count else { return false }
        return zip(self.utf8, other.utf8)
            .allSatisfy { left, right in
                left == right || (Self.lowercased(left) == Self.lowercased(right))
            }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
