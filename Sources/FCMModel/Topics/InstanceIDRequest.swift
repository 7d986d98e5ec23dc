import StrictJSON

/// Writes requests to the Instance ID API.
package enum InstanceIDRequest {
    /// The most devices that one request may name.
    package static let maxTokens = 1_000

    /// Changes the subscriptions of some devices to one topic.
    ///
    /// - Parameters:
    ///   - change: what becomes of them.
    ///   - tokens: 1 to 1,000 devices.
    ///   - topic: the topic.
    /// - Returns: the request.
    package static func batch(_ change: SubscriptionChange, _ tokens: [String], _ topic: TopicName) -> TopicRequest {
        var writer = JSONWriter(reservingCapacity: 128 + tokens.reduce(0) { $0 + $1.utf8.count + 4 })
        writer.beginObject()
        writer.member("to", TopicName.legacyPrefix + topic.text)
        writer.key("registration_tokens")
        writer.beginArray()
        for token in tokens { writer.string(token) }
        writer.endArray()
        writer.endObject()
        let path =
            switch change {
            case .subscribe: "/iid/v1:batchAdd"
            case .unsubscribe: "/iid/v1:batchRemove"
            }
        return TopicRequest(
            .post,
            path,
            of: path,
            body: writer.finish(),
            maxAnswerBytes: Target.maxAnswerBytes(recipients: tokens.count)
        )
    }

    /// Asks for what is known of a device, its subscriptions included.
    package static func info(_ token: String) -> TopicRequest {
        TopicRequest(.get, "/iid/info/\(PercentEncoding.encoded(token))?details=true", of: "/iid/info/{token}")
    }
}
