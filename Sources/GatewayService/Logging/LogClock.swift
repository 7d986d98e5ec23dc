import GatewayCore
import Synchronization

/// The time as lines tell it; the text of a second is made once.
final class LogClock: Sendable {
    private struct Second {
        var number = Int.min
        /// Up to the point before the milliseconds.
        var text: [UInt8] = []
    }

    private let clock: any WallClock
    private let second = Mutex(Second())

    init(_ clock: any WallClock = SystemWallClock()) {
        self.clock = clock
    }

    /// The moment in RFC 3339 form, UTC, with milliseconds.
    func now() -> [UInt8] {
        let now = self.clock.now()
        var bytes = self.second.withLock { second in
            if second.number != now.seconds {
                second = Second(number: now.seconds, text: Array(now.rfc3339.utf8.dropLast(4)))
            }
            return second.text
        }
        let milliseconds = Int(now.milliseconds - Int64(now.seconds) * 1_000)
        for divisor in [100, 10, 1] { bytes.append(UInt8(ascii: "0") + UInt8(milliseconds / divisor % 10)) }
        bytes.append(UInt8(ascii: "Z"))
        return bytes
    }
}
