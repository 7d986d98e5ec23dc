/// The settings on the control interface.
///
/// | member | meaning | range |
/// |---|---|---|
/// | `latency_ms` | pause before every answer | 0 to 3,600,000 |
/// | `max_concurrent_streams` | streams per HTTP/2 connection | 1 to 1,000,000 |
/// | `goaway_every_ms` | pause between two rounds of GOAWAY, 0 for none | 0 to 86,400,000 |
/// | `token_lifetime_s` | life of an access token | 1 to 86,400 |
/// | `unregistered_percent` | share of tokens that are called unregistered | 0 to 100 |
extension EmulatorSettings {
    private enum Member {
        static let latency = "latency_ms"
        static let streams = "max_concurrent_streams"
        static let goAway = "goaway_every_ms"
        static let lifetime = "token_lifetime_s"
        static let unregistered = "unregistered_percent"
    }

    /// Takes over the members present; the others stay.
    ///
    /// - Throws: ``ControlError`` naming the member that is wrong; nothing is changed then.
    mutating func apply(_ members: ControlMembers) throws(ControlError) {
        try members.allow([
            Member.latency, Member.streams, Member.goAway, Member.lifetime, Member.unregistered,
        ])
        var changed = self
        if let milliseconds = try members.integer(Member.latency, in: 0...3_600_000) {
            changed.latency = .milliseconds(milliseconds)
        }
        if let streams = try members.integer(Member.streams, in: 1...1_000_000) {
            changed.maxConcurrentStreams = streams
        }
        if let milliseconds = try members.integer(Member.goAway, in: 0...86_400_000) {
            changed.goAwayInterval = milliseconds == 0 ? nil : .milliseconds(milliseconds)
        }
        if let seconds = try members.integer(Member.lifetime, in: 1...86_400) {
            changed.tokenLifetimeSeconds = seconds
        }
        if let percent = try members.integer(Member.unregistered, in: 0...100) {
            changed.unregisteredPercent = percent
        }
        self = changed
    }

    /// All members.
    var json: String {
        let members = [
            (Member.goAway, Self.milliseconds(self.goAwayInterval ?? .zero)),
            (Member.latency, Self.milliseconds(self.latency)),
            (Member.streams, Int64(self.maxConcurrentStreams)),
            (Member.lifetime, Int64(self.tokenLifetimeSeconds)),
            (Member.unregistered, Int64(self.unregisteredPercent)),
        ]
        return "{" + members.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        duration.components.seconds * 1_000 + duration.components.attoseconds / 1_000_000_000_000_000
    }
}
