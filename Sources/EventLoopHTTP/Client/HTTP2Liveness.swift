import NIOCore

/// When a connection has to prove that it is alive, and when it has lived long enough.
///
/// Pure: the caller supplies the time, and acts on the verdict.
struct HTTP2Liveness {
    struct Limits: Sendable {
        /// Silence of a connection with exchanges before a ping.
        var pingAfterWaiting: TimeAmount
        /// Silence of a connection without exchanges before a ping.
        var pingAfterIdle: TimeAmount
        /// The time the peer has for any sign of life after a ping.
        var pingTimeout: TimeAmount
        var idleTimeout: TimeAmount
        var lifetime: TimeAmount
        /// The part of the lifetime that is left to chance, 0 to 1.
        var lifetimeJitter: Double
    }

    enum Verdict: Equatable {
        case fine(until: NIODeadline)
        /// Send a ping, and note it.
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

    /// A connection that is ready now; chance, 0 to 1, is drawn by lot: how much of the jitter the lifetime loses.
    init(limits: Limits, now: NIODeadline, chance: Double) {
        self.limits = limits
        let lifetime = Double(limits.lifetime.nanoseconds) * (1 - limits.lifetimeJitter * chance)
        self.retiresAt = now + .nanoseconds(Int64(lifetime))
        self.lastHeard = now
        self.idleSince = now
    }

    /// Notes that something arrived, and so the peer is there; true if a ping was waiting for that and another verdict
    /// holds now.
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

    /// The verdict on a connection that takes no more exchanges already: only whether it is alive matters.
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
