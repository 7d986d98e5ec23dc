/// Bounds repeats to a tenth of the calls, so that a server in trouble is not asked twice as much as one in health.
///
/// A few repeats are there from the start. However calls come, repeats ≤ calls / 10 + 3.
struct RetryBudget {
    /// In tenths of a repeat.
    private static let start = 30
    private static let most = 1_000
    private static let cost = 10

    private var tenths = Self.start

    /// Counts a call that is no repeat.
    mutating func deposit() {
        self.tenths = min(self.tenths + 1, Self.most)
    }

    /// Whether there is a repeat to take out.
    var hasOne: Bool { self.tenths >= Self.cost }

    /// Takes a repeat out.
    ///
    /// - Returns: whether there was one.
    mutating func withdraw() -> Bool {
        guard self.hasOne else { return false }
        self.tenths -= Self.cost
        return true
    }
}
