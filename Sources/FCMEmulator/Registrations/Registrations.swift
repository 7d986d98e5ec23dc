/// What is known of registrations beside what tokens say by their own text.
struct Registrations {
    private var ended: Set<String> = []
    private var canonical: [String: String] = [:]

    /// How many of a hundred tokens are dead whatever they are.
    var unregisteredPercent = 0

    /// How many registrations were ended one by one.
    var endedCount: Int { self.ended.count }

    /// Ends registrations, or makes them good again with or without a canonical token.
    mutating func set(_ tokens: [String], isEnded: Bool, canonical: String?) {
        for token in tokens {
            self.canonical[token] = isEnded ? nil : canonical
            if isEnded { self.ended.insert(token) } else { self.ended.remove(token) }
        }
    }

    /// What becomes of a message to a token: what was set for it, else what a switch for all says, else its own text.
    func script(of token: String) -> TokenScript {
        if self.ended.contains(token) { return .failed(LegacyErrorName.notRegistered.rawValue) }
        if let canonical = self.canonical[token] { return .accepted(canonical: canonical) }
        if Self.percentile(of: token) < self.unregisteredPercent {
            return .failed(LegacyErrorName.notRegistered.rawValue)
        }
        return TokenScript(token: token)
    }

    /// A number from 0 to 99 that is a token's own for good, evenly spread over tokens (FNV-1a).
    private static func percentile(of token: String) -> Int {
        let hash = token.utf8.reduce(UInt64(0xCBF2_9CE4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        // The low bits of this hash are the weakest.
        return Int((hash ^ hash >> 32) % 100)
    }
}
