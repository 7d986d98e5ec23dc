import NIOCore

/// Decides when a connection is pinged, dead, idle or too old.
///
/// Pure: the caller supplies the time, and acts on the verdict. Example with the default limits: a connection with
/// exchanges that is silent from 0 s is pinged at 5 s and dead at 10 s. It takes new exchanges for 44 to 55 minutes.
struct HTTP2Liveness {
    struct Limits: Sendable {
        /// The silence after which a connection with exchanges is pinged.
        var pingAfterWaiting: TimeAmount
        /// The silence after which a connection without exchanges is pinged.
        var pingAfterIdle: TimeAmount
        /// The time after a ping within which the peer must send something.
        var pingTimeout: TimeAmount
        var idleTimeout: TimeAmount
        var lifetime: TimeAmount
        /// The random part of the lifetime, 0 to 1.
        var lifetimeJitter: Double
    }

    enum Verdict: Equatable {
        case fine(until: NIODeadline)
        /// Send a ping, and call ``pinged(at:)``.
        case ping
        case dead
        case idle
        /// The connection should take no more exchanges.
        case retire
    }

    private let limits: Limits
    private let retiresAt: NIODeadline
    private var lastHeard: NIODeadline
    private var pingedAt: NIODeadline?
    private var idleSince: NIODeadline?

    /// A connection that is ready now. `chance` is random, 0 to 1: the share of the jitter by which the lifetime is
    /// shortened.
    init(limits: Limits, now: NIODeadline, chance: Double) {
        self.limits = limits
        let lifetime = Double(limits.lifetime.nanoseconds) * (1 - limits.lifetimeJitter * chance)
        self.retiresAt = now + .nanoseconds(Int64(lifetime))
        self.lastHeard = now
        self.idleSince = now
    }

    /// Records that something arrived from the peer. Returns true if a ping was waiting for that, so that the verdict
    /// has changed.
    mutating func heard(at now: NIODeadline) -> Bool {
        self.lastHeard = now
        defer { self.pingedAt = nil }
        return self.pingedAt != nil
    }

    mutating func pinged(at now: NIODeadline) {
        self.pingedAt = now
    }

    mutating func becameBusy() {
        self.idleSince = nil
    }

    mutating func becameIdle(at now: NIODeadline) {
        self.idleSince = now
    }

    func verdict(at now: NIODeadline) -> Verdict {
        if let idleSince = self.idleSince, now >= idleSince + self.limits.idleTimeout { return .idle }
        if now >= self.retiresAt { return .retire }
        var next = self.retiresAt
        if let idleSince = self.idleSince {
            next = min(next, idleSince + self.limits.idleTimeout)
        }
        if let pingedAt = self.pingedAt {
            let end = pingedAt + self.limits.pingTimeout
            return now >= end ? .dead : .fine(until: min(next, end))
        }
        let silence = self.idleSince == nil ? self.limits.pingAfterWaiting : self.limits.pingAfterIdle
        let end = self.lastHeard + silence
        return now >= end ? .ping : .fine(until: min(next, end))
    }

    /// The verdict on a connection that takes no more exchanges: `fine`, `ping` or `dead`.
    func verdictWhileDraining(at now: NIODeadline) -> Verdict {
        let (since, amount, due): (NIODeadline, TimeAmount, Verdict) =
            if let pingedAt = self.pingedAt {
                (pingedAt, self.limits.pingTimeout, .dead)
            } else {
                (self.lastHeard, self.limits.pingAfterWaiting, .ping)
            }
        return now >= since + amount ? due : .fine(until: since + amount)
    }
}

extension HTTP2Liveness.Limits {
    init(_ configuration: HTTPClientConfiguration) {
        self.init(
            pingAfterWaiting: TimeAmount(configuration.http2.pingAfterWaiting),
            pingAfterIdle: TimeAmount(configuration.http2.pingAfterIdle),
            pingTimeout: TimeAmount(configuration.http2.pingTimeout),
            idleTimeout: TimeAmount(configuration.idleTimeout),
            lifetime: TimeAmount(configuration.http2.lifetime),
            lifetimeJitter: configuration.http2.lifetimeJitter
        )
    }
}
