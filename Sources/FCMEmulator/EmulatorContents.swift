/// What ``EmulatorState`` guards.
struct EmulatorContents {
    var journal: Journal
    var deliveries: RingBuffer<Delivery>
    var subscriptions = Subscriptions()
    var groups = GroupRegistry()
    var registrations = Registrations()
    var faults = FaultScript()
    var settings: EmulatorSettings
    var accounts = ServiceAccounts()
    var accessTokens = AccessTokens()

    /// Requests and answers held back, by the number of the hold.
    var held: [Int: AsyncStream<Void>.Continuation] = [:]
    var lastHold = 0

    /// Tells the one task that says GOAWAY regularly that the interval changed.
    var intervalObserver: AsyncStream<Void>.Continuation?

    /// Who follows the journal.
    var observers: [Int: AsyncStream<JournalEntry>.Continuation] = [:]
    var lastObserver = 0

    var isShutDown = false

    init(configuration: EmulatorConfiguration) {
        self.journal = Journal(maxEntries: configuration.maxJournalEntries, maxBytes: configuration.maxJournalBytes)
        self.deliveries = RingBuffer(capacity: configuration.maxDeliveries)
        self.settings = configuration.settings
    }

    /// Holds something back until it is released, or until everything is.
    mutating func hold() -> Hold {
        self.lastHold += 1
        let (end, release) = AsyncStream<Void>.makeStream()
        if self.isShutDown {
            release.finish()
        } else {
            self.held[self.lastHold] = release
        }
        return Hold(id: self.lastHold, end: end)
    }

    /// Writes a decision into the request's entry, or a new entry if it has none.
    ///
    /// - Returns: the entry, or nil if it was forgotten meanwhile.
    mutating func close(_ request: ReceivedRequest, id: Int?, decision: JournalDecision) -> JournalEntry? {
        guard let id else { return self.journal.record(request, fault: nil, decision: decision) }
        return self.journal.complete(id, decision: decision)
    }

    /// Forgets which requests are held back; the caller lets them go.
    mutating func takeHeld() -> [AsyncStream<Void>.Continuation] {
        defer { self.held = [:] }
        return Array(self.held.values)
    }
}
