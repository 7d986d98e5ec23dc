import NIOCore

/// Writes requests to v1's topic subscriptions: each is about one device.
package struct V1TopicRequest: Sendable {
    /// How many subscriptions one page of a list may hold: long names of all of them still fit into an answer.
    private static let pageSize = 300

    private static let template = "/v1/projects/{project}/registrations/{token}/topicSubscriptions"

    private let registrations: String

    /// Requests for a project.
    ///
    /// - Parameter project: its id or number.
    package init(project: String) {
        self.registrations = "/v1/projects/\(PercentEncoding.encoded(project))/registrations/"
    }

    /// Changes a device's subscription to a topic; ending one that there is not counts as done.
    package func change(_ change: SubscriptionChange, _ token: String, _ topic: TopicName) -> TopicRequest {
        let topic = PercentEncoding.encoded(topic.text)
        let subscriptions = self.subscriptions(of: token)
        return switch change {
        case .subscribe:
            TopicRequest(
                .post,
                "\(subscriptions)?topic_name=\(topic)",
                of: Self.template,
                body: ByteBuffer(string: "{}"),
                maxAnswerBytes: Target.maxAnswerBytes(recipients: 1)
            )
        case .unsubscribe:
            TopicRequest(
                .delete,
                "\(subscriptions)/\(topic)?allow_missing=true",
                of: "\(Self.template)/{topic}",
                maxAnswerBytes: Target.maxAnswerBytes(recipients: 1)
            )
        }
    }

    /// Asks for a device's subscriptions.
    ///
    /// - Parameters:
    ///   - token: the device.
    ///   - page: what the last page named, for the next one.
    /// - Returns: the request.
    package func list(_ token: String, page: String? = nil) -> TopicRequest {
        let next = page.map { "&page_token=\(PercentEncoding.encoded($0))" } ?? ""
        let path = "\(self.subscriptions(of: token))?page_size=\(Self.pageSize)\(next)"
        return TopicRequest(.get, path, of: Self.template)
    }

    private func subscriptions(of token: String) -> String {
        "\(self.registrations)\(PercentEncoding.encoded(token))/topicSubscriptions"
    }
}
