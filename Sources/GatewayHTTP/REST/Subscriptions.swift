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

    /// Refuses installation ids of a tenant that sends by the legacy protocol.
    private static func check(
        _ kind: RetiredToken.Kind,
        named field: String,
        for profile: TenantProfile
    ) throws(Refusal) {
        guard kind == .installation, profile.tenant.upstream == .legacy else { return }
        throw Refusal(
            .invalidTarget,
            "This tenant sends by the legacy protocol, which supports registration tokens only",
            field: field
        )
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
            let (kind, tokens) = try Self.devices(exchange.members())
            let caller = try exchange.caller
            try Subscriptions.check(kind, named: "\(kind.rawValue)s", for: caller.profile)
            return SubscriptionCall(self.change, of: tokens, kind, to: topic, by: caller)
        }

        func load(of call: SubscriptionCall) -> RequestLoad { .subscriptions(devices: call.tokens.count) }

        func perform(_ call: SubscriptionCall, for exchange: Exchange) async throws -> HTTPServerResponse {
            Answer.response(to: call, await self.topics.change(call))
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
        private static func devices(_ members: JSONMembers) throws(Refusal) -> (RetiredToken.Kind, [String]) {
            var problems = FieldProblems()
            var devices: [(RetiredToken.Kind, [String]?)] = []
            for member in members where !problems.isFull {
                let pointer = JSONPointer().appending(member.key)
                if member.keyEquals("tokens") {
                    devices.append((.token, problems.registrations(member.value, at: pointer)))
                } else if member.keyEquals("fids") {
                    devices.append((.installation, problems.registrations(member.value, at: pointer)))
                } else {
                    problems.unknown(member.key, among: ["tokens", "fids"])
                }
            }
            if devices.count != 1 { problems.report(.invalidField, at: JSONPointer(), "Give either tokens or fids") }
            guard problems.list.isEmpty, case (let kind, let tokens?)? = devices.first else {
                throw Refusal(problems.list)
            }
            return (kind, tokens)
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
            let query = try exchange.query(["token", "fid", "limit", "cursor"])
            let (limit, cursor) = (try query.limit(), try query.cursor())
            let devices = RetiredToken.Kind.allCases.compactMap { kind in
                query.text(kind.rawValue).map { (kind: kind, text: $0) }
            }
            guard devices.count == 1, let (kind, text) = devices.first else {
                throw Refusal(.invalidField, "Either token or fid must name the device to look up")
            }
            guard RegistrationToken.isPlausible(text) else {
                throw Refusal(.invalidToken, "\(kind.rawValue) can't be that of a device")
            }
            let caller = try exchange.caller
            try Subscriptions.check(kind, named: kind.rawValue, for: caller.profile)
            let call = RegistrationCall(.subscriptions, of: text, kind, by: caller)
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
                "This must be an array of 1 to \(Target.maxRecipients) devices"
            )
            return nil
        }
        guard let texts = self.strings(value, at: pointer) else { return nil }
        for (index, text) in texts.enumerated() where !RegistrationToken.isPlausible(text) {
            self.report(.invalidToken, at: pointer.appending(index), "This can't be that of a device")
        }
        return texts
    }
}

extension Subscriptions {
    /// Writes the answers to requests about subscriptions.
    enum Answer {
        /// The answer: each device's outcome in the request's order, or the one cause that stopped them all.
        static func response(to call: SubscriptionCall, _ answer: ChargedAnswer<[SubscriptionOutcome]>)
            -> HTTPServerResponse
        {
            switch answer.result {
            case .failure(let refusal): Self.response(refusal, answer.quotas)
            case .success(let outcomes):
                Self.response(
                    Self.results(call, outcomes),
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

        private static func results(_ call: SubscriptionCall, _ outcomes: [SubscriptionOutcome]) -> ByteBuffer {
            let accepted = outcomes.count { $0 == .done }
            var writer = JSONWriter(reservingCapacity: 64 + outcomes.count * 224)
            writer.beginObject()
            writer.member("accepted", accepted)
            writer.member("rejected", outcomes.count - accepted)
            writer.beginArray("results")
            for (token, outcome) in zip(call.tokens, outcomes) {
                writer.beginObject()
                writer.key(call.kind.rawValue)
                writer.string(token)
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
