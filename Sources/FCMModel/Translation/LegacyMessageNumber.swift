import Crypto

/// The numbers by which legacy answers name messages to topics and conditions (TB-TOPICID).
enum LegacyMessageNumber {
    /// The number for a v1 id: the id itself where it is a positive 63-bit integer, else one made from its SHA-256,
    /// below 2⁵³, so that it is the same every time and fits old clients' number types.
    static func number(for id: String) -> Int {
        if let number = Self.integer(id) { return number }
        let prefix = SHA256.hash(data: Array(id.utf8)).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return max(1, Int(prefix % (1 << 53)))
    }

    /// Reads 1 to 19 digits without a leading zero.
    private static func integer(_ id: String) -> Int? {
        guard let first = id.utf8.first, first != UInt8(ascii: "0"), id.utf8.count <= 19,
            let number = Int(digits: id)
        else { return nil }
        return number
    }
}
