import FCMModel

/// Which recipients of a send may have been sent to, and what became of them.
///
/// Pure: whoever holds it makes it durable before anything leaves.
struct SendProgress: Sendable, Hashable {
    /// How many recipients the send has.
    let count: Int
    /// The places of those to whom the message may have left.
    private(set) var started: Set<Int> = []
    /// What became of them, as far as it is known.
    private(set) var outcomes: [Int: RecipientOutcome] = [:]

    /// Nothing has left.
    init(count: Int) {
        self.count = count
    }

    /// Progress that was kept; places that no recipient has are left out.
    init(count: Int, started: Set<Int>, outcomes: [Int: RecipientOutcome]) {
        self.count = count
        self.started = started.filter { (0..<count).contains($0) }
        self.outcomes = outcomes.filter { (0..<count).contains($0.key) }
    }

    /// The places of those to whom nothing has left.
    var remaining: [Int] { (0..<self.count).filter { !self.started.contains($0) } }

    /// Notes that the message is about to leave to some.
    mutating func start(_ places: some Sequence<Int>) {
        self.started.formUnion(places)
    }

    /// Takes back that the message was about to leave: it did not.
    mutating func takeBack(_ places: some Sequence<Int>) {
        self.started.subtract(places)
    }

    /// Notes what became of a recipient.
    mutating func finish(_ place: Int, _ outcome: RecipientOutcome) {
        self.outcomes[place] = outcome
    }

    /// What is known of every recipient; `outcome_unknown` of those that were started, and of no others.
    ///
    /// - Parameter later: what became of the remaining ones, in their order.
    /// - Returns: one outcome for each recipient.
    func results(with later: [RecipientOutcome] = []) -> [RecipientOutcome] {
        var later = later.makeIterator()
        return (0..<self.count)
            .map { place in
                guard !self.started.contains(place) else { return self.outcomes[place] ?? .rejected(.outcomeUnknown) }
                return later.next() ?? .rejected(.upstreamUnavailable)
            }
    }
}
