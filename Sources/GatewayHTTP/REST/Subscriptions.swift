import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Changes devices' subscriptions to topics, and lists them.
enum Subscriptions {
    /// A slice of a device's subscriptions, which are ordered by topic name.
    struct Page {
        let subscriptions: ArraySlice<TopicSubscription>
        /// The topic after which the next page begins; `nil` at the end.
        let last: String?

        init(_ all: [TopicSubscription], after cursor: String?, limit: Int) {
            let rest = cursor.map { cursor in
                all.drop { !cursor.utf8.lexicographicallyPrecedes($0.topic.utf8) }
            }
            let page = (rest ?? all[...]).prefix(limit)
            self.subscriptions = page
            self.last = page.endIndex < all.endIndex ? page.last?.topic : nil
        }
    }

    static func endpoints(_ topics: TopicPipeline) -> [any Endpoint] {
        [
            Change(.subscribe, at: "/v1/tenants/{tenant}/topics/{topic}/subscriptions", topics),
            Change(.unsubscribe, at: "/v1/tenants/{tenant}/topics/{topic}/subscriptions/remove", topics),
            List(topics: topics),
        ]
    }

    private struct Change: Endpoint {
        let route: Route
        private let change: SubscriptionChange
        private let topics: TopicPipeline

        init(_ change: SubscriptionChange, at template: String, _ topics: TopicPipeline) {
            self.route = Route(.post, template).with(\.action, AuditRecord.Action(change))
                .with(\.bodyLimit, Route.largeBody)
            self.change = change
            self.topics = topics
        }

        func read(_ exchange: Exchange) throws -> SubscriptionCall {
            let topic = try Self.topic(in: exchange)
            let tokens = try Self.tokens(exchange.members())
            return SubscriptionCall(self.change, of: tokens, to: topic, by: try exchange.caller)
        }

        func load(of call: SubscriptionCall) -> RequestLoad { .subscriptions(devices: call.tokens.count) }

        func perform(_ call: SubscriptionCall, for exchange: Exchange) async throws -> HTTPServerResponse {
            Answer.response(to: call.tokens, await self.topics.change(call))
        }

        /// Returns the topic in a path, unescaped.
        private static func topic(in exchange: Exchange) throws(Refusal) -> TopicName {
            guard let topic = exchange.parameters.decoded("topic").flatMap(TopicName.init),
                PercentEncoding.isAddressable(topic.text)
            else {
                throw Refusal(
                    .invalidTarget,
                    "The topic in the path is 1 to \(TopicName.maxLength) characters of A-Z a-z 0-9 - _ . ~ %, without "
                        + "/topics/ and not of dots alone; % is written %25"
                )
            }
            return topic
        }

        /// Returns the devices that a body names, in order and with repetitions.
        private static func tokens(_ members: JSONMembers) throws(Refusal) -> [String] {
            var problems = FieldProblems()
            let tokens: [String]? = problems.only("tokens", of: members, missing: "This must be present") {
                $0.registrations($1, at: JSONPointer().appending("tokens"))
            }
            guard let tokens, problems.list.isEmpty else { throw Refusal(problems.list) }
            return tokens
        }
    }

    private struct List: Endpoint {
        let route = Route(.get, "/v1/tenants/{tenant}/subscriptions").with(\.action, .topicList)
        let topics: TopicPipeline

        struct Work: Sendable {
            var call: RegistrationCall
            var cursor: String?
            var limit: Int
        }

        func read(_ exchange: Exchange) throws -> Work {
            let query = try exchange.query(["token", "limit", "cursor"])
            let (limit, cursor) = (try query.limit(), try query.cursor())
            guard let token = query.text("token") else {
                throw Refusal(.invalidField, "token must name the device to look up")
            }
            guard RegistrationToken.isPlausible(token) else {
                throw Refusal(.invalidToken, "token is not a registration token")
            }
            let call = RegistrationCall(.subscriptions, of: token, by: try exchange.caller)
            return Work(call: call, cursor: cursor, limit: limit)
        }

        func perform(_ work: Work, for exchange: Exchange) async throws -> HTTPServerResponse {
            let answer = await self.topics.look(up: work.call)
            return Answer.response(answer, after: work.cursor, limit: work.limit)
        }
    }
}

extension FieldProblems {
    fileprivate mutating func registrations(_ value: JSONValue, at pointer: JSONPointer) -> [String]? {
        guard let count = value.elements?.count, (1...Target.maxRecipients).contains(count) else {
            self.report(
                .invalidField,
                at: pointer,
                "This must be an array of 1 to \(Target.maxRecipients) registration tokens"
            )
            return nil
        }
        guard let texts = self.strings(value, at: pointer) else { return nil }
        for (index, text) in texts.enumerated() where !RegistrationToken.isPlausible(text) {
            self.report(.invalidToken, at: pointer.appending(index), "This is not a registration token")
        }
        return texts
    }
}

extension Subscriptions {
    /// Writes the answers to requests about subscriptions.
    enum Answer {
        /// The answer: each device's outcome in the request's order, or the one cause that stopped them all.
        static func response(to tokens: [String], _ answer: ChargedAnswer<[SubscriptionOutcome]>) -> HTTPServerResponse
        {
            switch answer.result {
            case .failure(let refusal): Self.response(refusal, answer.quotas)
            case .success(let outcomes):
                Self.response(
                    Self.results(tokens, outcomes),
                    answer.quotas,
                    code: outcomes.lazy.compactMap(\.code).first
                )
            }
        }

        static func response(_ answer: ChargedAnswer<RegistrationInfo>, after cursor: String?, limit: Int)
            -> HTTPServerResponse
        {
            switch answer.result {
            case .failure(let refusal):
                return Self.response(refusal, answer.quotas)
            case .success(let info):
                let page = Page(info.subscriptions, after: cursor, limit: limit)
                var writer = JSONWriter(reservingCapacity: 64 + page.subscriptions.count * 64)
                writer.beginObject()
                writer.beginArray("topics")
                for subscription in page.subscriptions {
                    writer.beginObject()
                    writer.member("topic", subscription.topic)
                    if let since = subscription.since { writer.member("since", since) }
                    writer.endObject()
                }
                writer.endArray()
                if let last = page.last { writer.member("next_cursor", Cursor.text(of: last)) }
                writer.endObject()
                return Self.response(writer.finish(), answer.quotas)
            }
        }

        private static func results(_ tokens: [String], _ outcomes: [SubscriptionOutcome]) -> ByteBuffer {
            let accepted = outcomes.count { $0 == .done }
            var writer = JSONWriter(reservingCapacity: 64 + outcomes.count * 224)
            writer.beginObject()
            writer.member("accepted", accepted)
            writer.member("rejected", outcomes.count - accepted)
            writer.beginArray("results")
            for (token, outcome) in zip(tokens, outcomes) {
                writer.beginObject()
                writer.member("token", token)
                switch outcome {
                case .done: writer.member("status", "accepted")
                case .rejected(let rejection): writer.write(rejection)
                }
                writer.endObject()
            }
            writer.endArray()
            writer.endObject()
            return writer.finish()
        }

        private static func response(
            _ body: ByteBuffer,
            _ quotas: [QuotaStatus],
            code: OutcomeCode? = nil
        ) -> HTTPServerResponse {
            var response = HTTPServerResponse(json: body)
            response.code = code?.rawValue
            response.headers.append(quotas)
            return response
        }

        private static func response(_ refusal: Refusal, _ quotas: [QuotaStatus]) -> HTTPServerResponse {
            var refusal = refusal
            if refusal.code == .upstreamUnavailable, refusal.detail == nil {
                refusal.detail = "FCM did not confirm it; repeat it later, which is safe"
            }
            var response = refusal.response
            response.headers.append(quotas)
            return response
        }
    }
}

extension SubscriptionOutcome {
    fileprivate var code: OutcomeCode? {
        if case .rejected(let rejection) = self { rejection.code } else { nil }
    }
}
