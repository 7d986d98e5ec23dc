/// How the emulator behaves; unlike ``EmulatorConfiguration`` it may change while it runs.
package struct EmulatorSettings: Sendable, Equatable {
    /// How long every answer is held back after the request was handled; control routes are not.
    package var latency: Duration

    /// How many streams a client may have open at once on one HTTP/2 connection, at least 1.
    package var maxConcurrentStreams: Int

    /// How often every HTTP/2 connection is told to go away; nil for never.
    package var goAwayInterval: Duration?

    /// How long an access token is valid, in whole seconds.
    package var tokenLifetimeSeconds: Int

    /// How many of a hundred tokens are called unregistered whatever they are, always the same ones; 0 to 100.
    package var unregisteredPercent: Int

    /// Creates settings.
    ///
    /// - Parameters:
    ///   - latency: pause before every answer.
    ///   - maxConcurrentStreams: streams per HTTP/2 connection, at least 1; the real service usually allows 100.
    ///   - goAwayInterval: pause between two rounds of GOAWAY, nil for none.
    ///   - tokenLifetimeSeconds: life of an access token, at least 1.
    ///   - unregisteredPercent: how many of a hundred tokens are called unregistered, 0 to 100.
    package init(
        latency: Duration = .zero,
        maxConcurrentStreams: Int = 100,
        goAwayInterval: Duration? = nil,
        tokenLifetimeSeconds: Int = 3_599,
        unregisteredPercent: Int = 0
    ) {
        self.latency = latency
        self.maxConcurrentStreams = maxConcurrentStreams
        self.goAwayInterval = goAwayInterval
        self.tokenLifetimeSeconds = tokenLifetimeSeconds
        self.unregisteredPercent = unregisteredPercent
    }
}
