/// Which devices are subscribed to which topics.
struct Subscriptions {
    private var tokensByTopic: [String: Set<String>] = [:]

    /// Subscribes devices to a topic.
    ///
    /// - Returns: how many devices the topic has now.
    @discardableResult
    mutating func subscribe(_ tokens: [String], to topic: String) -> Int {
        self.tokensByTopic[topic, default: []].formUnion(tokens)
        return self.tokensByTopic[topic]?.count ?? 0
    }

    /// The devices of one topic, sorted.
    func tokens(of topic: String) -> [String] {
        (self.tokensByTopic[topic] ?? []).sorted()
    }

    /// The devices a condition holds for, sorted.
    ///
    /// Without negation a condition can only hold for a device that is subscribed to one of its topics.
    func tokens(matching condition: ConditionEvaluator) -> [String] {
        var candidates: Set<String> = []
        for topic in condition.topics {
            candidates.formUnion(self.tokensByTopic[topic] ?? [])
        }
        let matching = candidates.filter { token in
            condition.matches { topic in self.tokensByTopic[topic]?.contains(token) ?? false }
        }
        return matching.sorted()
    }
}
