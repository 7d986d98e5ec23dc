import Foundation

/// Message ids in the shapes the service uses.
enum MessageID {
    /// What the service answers to a dry run.
    static let dryRun = "fake_message_id"

    /// An id such as `0:1500415314455276%31bd1c9631bd1c96`: microseconds since 1970 and 16 hexadecimal digits.
    static func device(at time: Date) -> String {
        let micros = Int64(time.timeIntervalSince1970 * 1_000_000)
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        return "0:\(micros)%" + String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// An id of a topic message: a positive number of 63 bits.
    static func topic() -> Int64 {
        .random(in: 1 ... .max)
    }
}
