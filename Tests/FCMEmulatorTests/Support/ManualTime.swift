import Foundation
import Synchronization

/// A time of day the test sets.
final class ManualTime: Sendable {
    private let date: Mutex<Date>

    init(_ secondsSince1970: TimeInterval = 1_700_000_000) {
        self.date = Mutex(Date(timeIntervalSince1970: secondsSince1970))
    }

    var now: Date { self.date.withLock { $0 } }

    func advance(seconds: TimeInterval) {
        self.date.withLock { $0 = $0.addingTimeInterval(seconds) }
    }
}
