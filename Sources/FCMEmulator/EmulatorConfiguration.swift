/// The emulator's address, accepted credentials and memory limits.
package struct EmulatorConfiguration: Sendable {
    package var host: String
    /// TCP port to bind; 0 lets the system choose, see ``FCMEmulator/boundPort()``.
    package var port: Int
    /// The accepted legacy server keys; while the set is empty, every non-empty key is accepted.
    package var serverKeys: Set<String>
    /// Certificate and key for TLS; `nil` for plain text.
    ///
    /// The port speaks HTTP/2 and HTTP/1.1 either way.
    package var certificate: EmulatorCertificate?
    /// Service accounts whose assertions are accepted from the start; see also
    /// ``FCMEmulator/makeServiceAccount(projectID:clientEmail:)``.
    package var serviceAccounts: [ServiceAccountFile] = []
    /// The settings at the start, and after ``FCMEmulator/reset()``.
    package var settings = EmulatorSettings()
    /// Largest request body read, in bytes; a larger one is answered with status 413.
    package var maxBodyBytes = 4 * 1024 * 1024
    /// The most journal entries; the oldest are dropped first, also if request bodies exceed their bytes.
    package var maxJournalEntries = 10_000
    package var maxJournalBytes = 64 * 1024 * 1024
    /// The most deliveries; the oldest are dropped first.
    package var maxDeliveries = 10_000

    package init(
        host: String = "127.0.0.1",
        port: Int = 8085,
        serverKeys: Set<String> = [],
        certificate: EmulatorCertificate? = nil
    ) {
        self.host = host
        self.port = port
        self.serverKeys = serverKeys
        self.certificate = certificate
    }
}

/// The emulator's behaviour; unlike ``EmulatorConfiguration`` it may change at run time.
package struct EmulatorSettings: Sendable, Equatable {
    /// The delay of every answer after its request was handled; control routes have none.
    package var latency = Duration.zero
    /// The most open streams of one HTTP/2 connection, at least 1; FCM usually allows 100.
    package var maxConcurrentStreams = 100
    /// The interval between rounds of GOAWAY on every HTTP/2 connection; `nil` for none.
    package var goAwayInterval: Duration?
    /// The lifetime of an access token, in whole seconds, at least 1.
    package var tokenLifetimeSeconds = 3_599
    /// The percentage of tokens that are reported as unregistered, always the same ones; 0 to 100.
    package var unregisteredPercent = 0
}

/// The settings on the control interface.
///
/// | member | meaning | range |
/// |---|---|---|
/// | `latency_ms` | pause before every answer | 0 to 3,600,000 |
/// | `max_concurrent_streams` | streams per HTTP/2 connection | 1 to 1,000,000 |
/// | `goaway_every_ms` | pause between two rounds of GOAWAY, 0 for none | 0 to 86,400,000 |
/// | `token_lifetime_s` | lifetime of an access token | 1 to 86,400 |
/// | `unregistered_percent` | percentage of tokens reported as unregistered | 0 to 100 |
extension EmulatorSettings {
    private enum Member {
        static let latency = "latency_ms"
        static let streams = "max_concurrent_streams"
        static let goAway = "goaway_every_ms"
        static let lifetime = "token_lifetime_s"
        static let unregistered = "unregistered_percent"
    }

    /// Applies the members present; the other settings stay.
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

/// The reason why the emulator could not be used as requested.
package enum EmulatorError: Error, Equatable {
    /// `run()` was called a second time; an emulator runs once.
    case alreadyRun
    /// `run()` ended before the port was bound.
    case neverBound
    /// The text is not a topic name: 1 to 900 characters of `A-Z a-z 0-9 - _ . ~ %`, without `/topics/`.
    case badTopic(String)
    /// The text is not a service-account file; the value is the reason.
    case badServiceAccount(String)
}
