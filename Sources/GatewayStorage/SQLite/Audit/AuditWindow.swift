import GatewayCore

/// A range of time in microseconds since 1970: from the first on and before the second.
struct AuditWindow: Hashable {
    /// How far a record's time may be from that in its message's id: a send ends within its deadline, and clocks are
    /// set now and then.
    private static let slackMicroseconds: Int64 = 10 * 60 * 1_000_000

    private(set) var from: Int64
    private(set) var to: Int64

    /// The window of a query; `nil` when the query leaves the time open.
    init?(_ query: AuditQuery) {
        let message = query.messageID.flatMap(Self.milliseconds(inUUID:)).map { $0 * 1_000 }
        guard query.from != nil || query.to != nil || message != nil else { return nil }
        self.from = query.from?.microseconds ?? .min
        self.to = query.to?.microseconds ?? .max
        if let message {
            self.from = max(self.from, message - Self.slackMicroseconds)
            self.to = min(self.to, message + Self.slackMicroseconds)
        }
    }

    /// The time that begins a UUID of version 7 (RFC 9562, 5.7); `nil` for any other text.
    private static func milliseconds(inUUID text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count == 36, bytes[8] == UInt8(ascii: "-"), bytes[14] == UInt8(ascii: "7") else { return nil }
        return Int64(String(decoding: bytes[0..<8] + bytes[9..<13], as: UTF8.self), radix: 16)
    }
}
