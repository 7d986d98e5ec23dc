import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes

/// Keeps subscriptions as the Instance ID API does: `/iid/v1:batchAdd`, `/iid/v1:batchRemove`, `/iid/v1/{token}/rel/topics/{topic}`
/// and `/iid/info/{token}`.
enum InstanceIDSubscriptions {
    static func endpoints(_ topics: TopicPipeline) -> [any Endpoint] {
        [
            Batch(route: Self.route(.post, "/iid/v1:batchAdd"), change: .subscribe, topics: topics),
            Batch(route: Self.route(.post, "/iid/v1:batchRemove"), change: .unsubscribe, topics: topics),
            Info(route: Self.route(.get, "/iid/info/{token}"), topics: topics),
            Relation(route: Self.route(.post, Relation.template), change: .subscribe, topics: topics),
            Relation(route: Self.route(.delete, Relation.template), change: .unsubscribe, topics: topics),
        ]
    }

    private static func route(_ method: HTTPRequest.Method, _ template: String) -> Route {
        let route = Route(method, template)
            .with(\.credential, .legacyKey)
            .with(\.scope, .manageTopics)
            .with(\.dialect, .instanceID)
            .with(\.spelling, .escaped)
        return template.hasPrefix("/iid/v1:") ? route.with(\.bodyLimit, Route.largeBody) : route
    }

    /// Changes a topic's subscriptions of up to a thousand devices.
    private struct Batch: Endpoint {
        let route: Route
        let change: SubscriptionChange
        let topics: TopicPipeline

        func read(_ exchange: Exchange) throws -> SubscriptionCommand {
            let batch = try InstanceIDBatch(parsing: exchange.request.body)
            return try SubscriptionCommand(exchange, self.change, batch.topic, batch.tokens)
        }

        func load(of command: SubscriptionCommand) -> RequestLoad { .subscriptions(devices: command.tokens.count) }

        func perform(_ command: SubscriptionCommand, for exchange: Exchange) async throws -> HTTPServerResponse {
            let answer = await self.topics.change(command)
            let reply: Reply
            switch answer.content {
            case .value(let outcomes):
                reply = InstanceIDReplyWriter.reply(to: outcomes)
            case .refused(let refusal) where refusal.code == .tenantRateExceeded:
                // As legacy FCM has it for limits: each device's own error, which clients know how to repeat.
                let rejected = SubscriptionOutcome.rejected(refusal.rejection)
                reply = InstanceIDReplyWriter.reply(to: Array(repeating: rejected, count: command.tokens.count))
            case .refused(let refusal):
                reply = InstanceIDReplyWriter.reply(refusing: refusal.inFCMsWords)
            }
            return HTTPServerResponse(reply, answer.quotas)
        }

        func refuse(_ principal: Principal, lacking scope: Scope, _ exchange: Exchange) async -> Refusal {
            await self.topics.refuse(principal, self.change, origin: exchange.origin)
        }
    }

    /// Changes one device's subscription to one topic.
    private struct Relation: Endpoint {
        static let template = "/iid/v1/{token}/rel/topics/{topic}"

        let route: Route
        let change: SubscriptionChange
        let topics: TopicPipeline

        func read(_ exchange: Exchange) throws -> SubscriptionCommand {
            guard let topic = exchange.parameters.decoded("topic").flatMap(TopicName.init),
                PercentEncoding.isAddressable(topic.text)
            else { throw Refusal(.invalidField, "The path names no topic") }
            return try SubscriptionCommand(exchange, self.change, topic, [exchange.parameters.decoded("token") ?? ""])
        }

        func perform(_ command: SubscriptionCommand, for exchange: Exchange) async throws -> HTTPServerResponse {
            let answer = await self.topics.change(command)
            let reply: Reply
            switch answer.content {
            case .value([.done]): reply = InstanceIDReplyWriter.done
            case .value(let outcomes):
                let rejection: Rejection =
                    if case .rejected(let rejection)? = outcomes.first { rejection } else {
                        Rejection(code: .internalError)
                    }
                reply = InstanceIDReplyWriter.reply(refusing: Refusal(rejection))
            case .refused(let refusal): reply = InstanceIDReplyWriter.reply(refusing: refusal.inFCMsWords)
            }
            return HTTPServerResponse(reply, answer.quotas)
        }

        func refuse(_ principal: Principal, lacking scope: Scope, _ exchange: Exchange) async -> Refusal {
            await self.topics.refuse(principal, self.change, origin: exchange.origin)
        }
    }

    /// Tells what is known of a device.
    private struct Info: Endpoint {
        let route: Route
        let topics: TopicPipeline

        func read(_ exchange: Exchange) throws -> RegistrationCommand {
            RegistrationCommand(
                principal: try exchange.caller,
                token: exchange.parameters.decoded("token") ?? "",
                part: .everything,
                origin: exchange.origin,
                deadline: exchange.deadline
            )
        }

        func perform(_ command: RegistrationCommand, for exchange: Exchange) async throws -> HTTPServerResponse {
            let answer = await self.topics.look(up: command)
            let reply: Reply
            switch answer.content {
            case .value(let info):
                let details = FacadeQuery(exchange.request.head.pathBytes).text("details")
                reply = InstanceIDReplyWriter.reply(with: info, includingTopics: details?.lowercased() == "true")
            case .refused(let refusal):
                reply = InstanceIDReplyWriter.reply(refusing: refusal.inFCMsWords)
            }
            return HTTPServerResponse(reply, answer.quotas)
        }

        func refuse(_ principal: Principal, lacking scope: Scope, _ exchange: Exchange) async -> Refusal {
            await self.topics.refuse(principal, nil, origin: exchange.origin)
        }
    }
}

extension SubscriptionCommand {
    fileprivate init(
        _ exchange: Exchange,
        _ change: SubscriptionChange,
        _ topic: TopicName,
        _ tokens: [String]
    ) throws(Refusal) {
        self.init(
            principal: try exchange.caller,
            change: change,
            topic: topic,
            tokens: tokens,
            origin: exchange.origin,
            deadline: exchange.deadline
        )
    }
}

extension Refusal {
    /// That the gateway lacks a credential is an internal error to a caller in FCM's own words, without a reason.
    fileprivate var inFCMsWords: Refusal {
        var refusal = self
        if refusal.code == .upstreamCredentials { refusal.detail = nil }
        return refusal
    }
}
