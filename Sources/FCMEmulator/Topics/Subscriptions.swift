import Foundation

/// The devices' subscriptions to topics, with their times.
struct Subscriptions {
    static let maxTopics = 2_000
    private var tokensByTopic: [String: Set<String>] = [:]
    private var topicsByToken: [String: [String: Date]] = [:]

    @discardableResult
    mutating func subscribe(
        _ tokens: [String],
        to topic: String,
        at time: Date = Date(timeIntervalSince1970: 0)
    ) -> Int {
        for token in tokens where self.topicsByToken[token]?[topic] == nil {
            self.topicsByToken[token, default: [:]][topic] = time
        }
        self.tokensByTopic[topic, default: []].formUnion(tokens)
        return self.tokensByTopic[topic]?.count ?? 0
    }

    @discardableResult
    mutating func unsubscribe(_ token: String, from topic: String) -> Bool {
        guard self.topicsByToken[token]?.removeValue(forKey: topic) != nil else { return false }
        if self.topicsByToken[token]?.isEmpty == true { self.topicsByToken[token] = nil }
        self.tokensByTopic[topic]?.remove(token)
        if self.tokensByTopic[topic]?.isEmpty == true { self.tokensByTopic[topic] = nil }
        return true
    }

    func topics(of token: String) -> [String: Date] {
        self.topicsByToken[token] ?? [:]
    }

    /// True if a device may follow a topic: it already does, or has not reached the limit.
    func mayFollow(_ topic: String, token: String) -> Bool {
        let topics = self.topicsByToken[token] ?? [:]
        return topics[topic] != nil || topics.count < Self.maxTopics
    }

    func tokens(of topic: String) -> [String] {
        (self.tokensByTopic[topic] ?? []).sorted()
    }

    /// The devices that a condition holds for, sorted.
    ///
    /// With a negation, the condition may hold for devices without any of its topics. Devices without any topic are
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
