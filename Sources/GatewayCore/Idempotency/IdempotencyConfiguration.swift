/// How long keys are kept, and how sends that carry one proceed.
package struct IdempotencyConfiguration: Sendable {
    /// For how long a repeat is recognised, from the first use of its key.
    package var lifetime: Duration
    /// How many recipients of a list are marked as started at once, where each is a call of its own.
    package var startsPerMark: Int
    /// How often expired records are dropped.
    package var purgeInterval: Duration
    /// How many are dropped in one transaction, so that other writers never wait long for their turn.
    package var purgeBatch: Int

    /// The defaults: a day, 200 recipients, a minute and 500 records.
    package init(
        lifetime: Duration = .seconds(86_400),
        startsPerMark: Int = 200,
        purgeInterval: Duration = .seconds(60),
        purgeBatch: Int = 500
    ) {
        precondition(startsPerMark >= 1, "startsPerMark must be at least 1, not \(startsPerMark)")
        self.lifetime = lifetime
        self.startsPerMark = startsPerMark
        self.purgeInterval = purgeInterval
        self.purgeBatch = purgeBatch
    }
}
