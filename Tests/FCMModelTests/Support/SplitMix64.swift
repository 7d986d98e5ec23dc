/// A small generator of random numbers that is the same on every machine.
struct SplitMix64: RandomNumberGenerator {
    /// What property tests start from, each anew.
    static let seeds: Range<UInt64> = 0..<25

    private var state: UInt64

    /// Creates a generator.
    ///
    /// - Parameter seed: Decides all that follows.
    init(seed: UInt64) {
        self.state = seed
    }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ (mixed &>> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed &>> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed &>> 31)
    }

    /// Draws a number; the slight bias is of no concern here, speed in a debug build is.
    ///
    /// - Parameter bound: One more than the largest.
    /// - Returns: A number from 0 to the bound, exclusive.
    mutating func below(_ bound: Int) -> Int {
        Int(truncatingIfNeeded: (self.next() &>> 33) % UInt64(bound))
    }

    /// Draws an element.
    ///
    /// - Parameter choices: What to draw from; not empty.
    /// - Returns: One of them.
    mutating func pick<Choice>(_ choices: [Choice]) -> Choice {
        choices[self.below(choices.count)]
    }
}
