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
    /// With a negation it may hold for devices that follow none of its topics; those that follow no topic at all are
    /// unknown here and left out.
    func tokens(matching condition: ConditionEvaluator) -> [String] {
        let topics = condition.needsSubscription ? condition.topics : Array(self.tokensByTopic.keys)
        var candidates: Set<String> = []
        for topic in topics {
            candidates.formUnion(self.tokensByTopic[topic] ?? [])
        }
        let matching = candidates.filter { token in
            condition.matches { topic in self.tokensByTopic[topic]?.contains(token) ?? false }
        }
        return matching.sorted()
    }
}
