import CoreMetrics
import GatewayCore
import Metrics

/// How long requests to one listener took, by route, method and status, in a bounded number of histograms.
///
/// A histogram is 17 series, and the documented answers alone are hundreds of combinations. The first ones have histograms
/// of their own. What is new beyond that is measured by the class of its status (`4xx`), and in the end without its route.
struct HTTPDurations {
    /// What tells requests apart.
    struct Key: Hashable {
        enum Status: Hashable {
            case exact(Int)
            /// The first digit of the status.
            case of(hundreds: Int)
        }

        var route: String
        var method: String
        var status: Status
    }

    /// How many histograms there may be.
    struct Room {
        /// Of route, method and status.
        var exact: Int
        /// Of route, method and class of the status.
        var classes: Int

        /// The listener that callers use.
        static let data = Room(exact: 36, classes: 12)
        /// The listener that operators use.
        static let admin = Room(exact: 16, classes: 6)
    }

    private var timers: MetricFamily<Key, Timer>
    private var room: Room
    /// Of the room, what refused requests may take: anybody can bring these about, and they must leave room for the others.
    private var refusalRoom: Room

    init(factory: any MetricsFactory, room: Room) {
        self.timers = MetricFamily { key in
            Timer(
                label: "fcmgw_http_request_duration_seconds",
                dimensions: [("route", key.route), ("method", key.method), ("status", key.status.label)],
                factory: factory
            )
        }
        self.room = room
        self.refusalRoom = Room(exact: room.exact / 2, classes: room.classes / 2)
    }

    /// The histogram of requests.
    ///
    /// - Parameter key: what tells them apart; its status is an exact one.
    /// - Returns: their own histogram, or one that they share with others.
    mutating func timer(of key: Key) -> Timer {
        if let timer = self.timers.known(key) { return timer }
        guard case .exact(let status) = key.status else { return self.timers.member(of: key) }
        let hundreds = min(max(status / 100, 2), 5)
        if self.takeRoom(\.exact, hundreds: hundreds) { return self.timers.member(of: key) }
        let classed = Key(route: key.route, method: key.method, status: .of(hundreds: hundreds))
        if let timer = self.timers.known(classed) { return timer }
        if self.takeRoom(\.classes, hundreds: hundreds) { return self.timers.member(of: classed) }
        return self.timers.member(of: Key(route: "other", method: "other", status: .of(hundreds: hundreds)))
    }

    private mutating func takeRoom(_ part: WritableKeyPath<Room, Int>, hundreds: Int) -> Bool {
        guard self.room[keyPath: part] > 0 else { return false }
        if hundreds == 4 {
            guard self.refusalRoom[keyPath: part] > 0 else { return false }
            self.refusalRoom[keyPath: part] -= 1
        }
        self.room[keyPath: part] -= 1
        return true
    }
}

extension HTTPDurations.Key.Status {
    /// As it stands in the label.
    fileprivate var label: String {
        switch self {
        case .exact(let status): String(status)
        case .of(let hundreds): "\(hundreds)xx"
        }
    }
}
