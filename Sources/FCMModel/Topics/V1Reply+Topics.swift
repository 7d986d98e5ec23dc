import StrictJSON

/// Answers in the shapes of v1's topic subscriptions.
extension V1Reply {
    /// A subscription that there is now, whether or not there was one before.
    ///
    /// - Parameters:
    ///   - topic: its topic.
    ///   - token: its device.
    ///   - project: the project as it stands in the request's path.
    /// - Returns: the answer.
    package static func subscribed(to topic: TopicName, token: String, project: String) -> V1Reply {
        var writer = JSONWriter()
        writer.write(TopicSubscription(topic: topic.text), token: token, project: project)
        return V1Reply(status: 200, body: writer.finish(), retryAfter: nil)
    }

    /// An empty object: there is no such subscription any more.
    package static var unsubscribed: V1Reply {
        var writer = JSONWriter()
        writer.beginObject()
        writer.endObject()
        return V1Reply(status: 200, body: writer.finish(), retryAfter: nil)
    }

    /// A page of a device's subscriptions.
    ///
    /// - Parameters:
    ///   - subscriptions: the page.
    ///   - nextPage: by what the next one is asked for, if there is one.
    ///   - token: the device.
    ///   - project: the project as it stands in the request's path.
    /// - Returns: the answer.
    package static func subscriptions(
        _ subscriptions: some Sequence<TopicSubscription>,
        nextPage: String?,
        token: String,
        project: String
    ) -> V1Reply {
        var writer = JSONWriter(reservingCapacity: 1_024)
        writer.beginObject()
        writer.key("topicSubscriptions")
        writer.beginArray()
        for subscription in subscriptions {
            writer.write(subscription, token: token, project: project)
        }
        writer.endArray()
        if let nextPage { writer.member("nextPageToken", nextPage) }
        writer.endObject()
        return V1Reply(status: 200, body: writer.finish(), retryAfter: nil)
    }

    /// What a caller gets to see of a subscription that was not changed or not told.
    package init(refusingSubscription rejection: Rejection) {
        guard rejection.code == .invalidToken else {
            self.init(refusing: rejection)
            return
        }
        self.init(
            V1Error(
                .invalidArgument,
                .invalidArgument,
                "The registration token is not a valid FCM registration token"
            ),
            code: rejection.code
        )
    }

    /// The answer to a method that is not served at a path.
    package static let methodNotAllowed: V1Reply = {
        let body = V1Reply.badRequest("The method is not allowed here.").body
        var reply = V1Reply(status: 405, body: body, retryAfter: nil)
        reply.code = .methodNotAllowed
        return reply
    }()
}

extension JSONWriter {
    fileprivate mutating func write(_ subscription: TopicSubscription, token: String, project: String) {
        self.beginObject()
        self.member(
            "name",
            "projects/\(project)/registrations/\(token)/topicSubscriptions/\(subscription.topic)"
        )
        self.member("topicName", subscription.topic)
        if let since = subscription.since {
            // The Instance ID API tells the day alone.
            self.member("createTime", since.utf8.count == 10 ? "\(since)T00:00:00Z" : since)
        }
        self.endObject()
    }
}
