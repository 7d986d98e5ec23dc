import FCMModel

/// A list of devices as it is worked off: each once, and only those that can be devices at all.
struct DistinctTokens: Sendable {
    /// The devices to ask FCM about, in the order in which they were named first.
    let tokens: [String]
    /// For each entry of the list the place of its device in ``tokens``; `nil` for what is none.
    private let places: [Int?]

    init(_ list: [String]) {
        // By bytes: as text, some that FCM tells apart are equal.
        var known: [[UInt8]: Int] = [:]
        var tokens: [String] = []
        var places: [Int?] = []
        known.reserveCapacity(list.count)
        tokens.reserveCapacity(list.count)
        places.reserveCapacity(list.count)
        for token in list {
            let bytes = Array(token.utf8)
            if let place = known[bytes] {
                places.append(place)
            } else if RegistrationToken.isPlausible(token) {
                known[bytes] = tokens.count
                places.append(tokens.count)
                tokens.append(token)
            } else {
                places.append(nil)
            }
        }
        self.tokens = tokens
        self.places = places
    }

    /// One outcome for each entry of the list.
    func spread(_ outcomes: [SubscriptionOutcome]) -> [SubscriptionOutcome] {
        self.places.map { place in
            guard let place else { return .rejected(.invalidToken) }
            // Each device has an outcome; one that an upstream owes is nobody's success.
            return outcomes.indices.contains(place) ? outcomes[place] : .rejected(.upstreamProtocol)
        }
    }
}
