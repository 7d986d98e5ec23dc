import GatewayCore

/// A range of time in microseconds since 1970: from the first on and before the second.
struct AuditWindow: Hashable {
    /// How much earlier than its message's id a record may be; clocks are set now and then.
    private static let leadMicroseconds: Int64 = 10 * 1_000_000
    /// How much later: a send ends within its deadline of 20 s.
    private static let lagMicroseconds: Int64 = 60 * 1_000_000

    private(set) var from: Int64
    private(set) var to: Int64

    /// The window of a query, as wide as can be where the query leaves the time open.
    init(_ query: AuditQuery) {
        self.from = query.from?.microseconds ?? .min
        self.to = query.to?.microseconds ?? .max
        if let made = query.messageID.flatMap(Self.microseconds(inUUID:)) {
            self.from = max(self.from, made - Self.leadMicroseconds)
            self.to = min(self.to, made + Self.lagMicroseconds)
        }
    }

    /// The time that begins a UUID of version 7 (RFC 9562, 5.7); `nil` for any other text.
    private static func microseconds(inUUID text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count == 36, bytes[8] == UInt8(ascii: "-"), bytes[14] == UInt8(ascii: "7") else { return nil }
        return Int64(String(decoding: bytes[0..<8] + bytes[9..<13], as: UTF8.self), radix: 16).map { $0 * 1_000 }
    }
}
