import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes

/// Manages subscriptions as the Instance ID API does: `/iid/v1:batchAdd`, `/iid/v1:batchRemove`,
/// `/iid/v1/{token}/rel/topics/{topic}` and `/iid/info/{token}`.
enum InstanceIDSubscriptions {
    static func endpoints(_ topics: TopicPipeline) -> [any Endpoint] {
        [
            Batch(change: .subscribe, at: "/iid/v1:batchAdd", topics),
            Batch(change: .unsubscribe, at: "/iid/v1:batchRemove", topics),
            Info(topics: topics),
            Relation(.post, .subscribe, topics),
            Relation(.delete, .unsubscribe, topics),
        ]
    }

    private static func route(_ method: HTTPRequest.Method, _ template: String, _ action: AuditRecord.Action) -> Route {
        Route(method, template)
            .with(\.credential, .legacyKey)
            .with(\.action, action)
            .with(\.dialect, .instanceID)
            .with(\.spelling, .escaped)
    }

    private struct Batch: Endpoint {
        let route: Route
        private let change: SubscriptionChange
        private let topics: TopicPipeline

        init(change: SubscriptionChange, at template: String, _ topics: TopicPipeline) {
            self.route = InstanceIDSubscriptions.route(.post, template, AuditRecord.Action(change))
                .with(\.bodyLimit, Route.largeBody)
            self.change = change
            self.topics = topics
        }

        func read(_ exchange: Exchange) throws -> SubscriptionCall {
            let batch = try InstanceIDBatch(parsing: exchange.request.body)
            return SubscriptionCall(self.change, of: batch.tokens, to: batch.topic, by: try exchange.caller)
        }

        func load(of call: SubscriptionCall) -> RequestLoad { .subscriptions(devices: call.tokens.count) }

        func perform(_ call: SubscriptionCall, for exchange: Exchange) async throws -> HTTPServerResponse {
            let answer = await self.topics.change(call)
            let reply: Reply
            switch answer.result {
            case .success(let outcomes):
                reply = InstanceIDReplyWriter.reply(to: outcomes)
            case .failure(let refusal) where refusal.code == .tenantRateExceeded:
                // Legacy FCM reports limits as an error of each device, which clients know how to retry.
                let rejected = SubscriptionOutcome.rejected(refusal.rejection)
                reply = InstanceIDReplyWriter.reply(to: Array(repeating: rejected, count: call.tokens.count))
            case .failure(let refusal):
                reply = InstanceIDReplyWriter.reply(refusing: refusal.inFCMsWords)
            }
            return HTTPServerResponse(reply, answer.quotas)
        }
    }

    private struct Relation: Endpoint {
        let route: Route
        private let change: SubscriptionChange
        private let topics: TopicPipeline

        init(_ method: HTTPRequest.Method, _ change: SubscriptionChange, _ topics: TopicPipeline) {
            let template = "/iid/v1/{token}/rel/topics/{topic}"
            self.route = InstanceIDSubscriptions.route(method, template, AuditRecord.Action(change))
            self.change = change
            self.topics = topics
        }

        func read(_ exchange: Exchange) throws -> SubscriptionCall {
            guard let topic = exchange.parameters.decoded("topic").flatMap(TopicName.init),
                PercentEncoding.isAddressable(topic.text)
            else { throw Refusal(.invalidField, "The path names no topic") }
            let token = exchange.parameters.decoded("token") ?? ""
            return SubscriptionCall(self.change, of: [token], to: topic, by: try exchange.caller)
        }

        func perform(_ call: SubscriptionCall, for exchange: Exchange) async throws -> HTTPServerResponse {
            let answer = await self.topics.change(call)
            let reply: Reply
            switch answer.result {
            case .success([.done]): reply = InstanceIDReplyWriter.done
            case .success(let outcomes):
                let rejection: Rejection =
                    if case .rejected(let rejection)? = outcomes.first { rejection } else {
                        Rejection(code: .internalError)
                    }
                reply = InstanceIDReplyWriter.reply(refusing: Refusal(rejection))
            case .failure(let refusal): reply = InstanceIDReplyWriter.reply(refusing: refusal.inFCMsWords)
            }
            return HTTPServerResponse(reply, answer.quotas)
        }
    }

    private struct Info: Endpoint {
        let route = InstanceIDSubscriptions.route(.get, "/iid/info/{token}", .topicList)
        let topics: TopicPipeline

        func read(_ exchange: Exchange) throws -> RegistrationCall {
            let token = exchange.parameters.decoded("token") ?? ""
            return RegistrationCall(.everything, of: token, by: try exchange.caller)
        }

        func perform(_ call: RegistrationCall, for exchange: Exchange) async throws -> HTTPServerResponse {
            let answer = await self.topics.look(up: call)
            let reply: Reply
            switch answer.result {
            case .success(let info):
                let details = FacadeQuery(exchange.request.head.pathBytes).text("details")
                reply = InstanceIDReplyWriter.reply(with: info, includingTopics: details?.lowercased() == "true")
            case .failure(let refusal):
                reply = InstanceIDReplyWriter.reply(refusing: refusal.inFCMsWords)
            }
            return HTTPServerResponse(reply, answer.quotas)
        }
    }
}

extension Refusal {
    /// The refusal without the detail about a missing FCM credential: FCM's clients get an internal error.
    fileprivate var inFCMsWords: Refusal {
        var refusal = self
        if refusal.code == .upstreamCredentials { refusal.detail = nil }
        return refusal
    }
}
