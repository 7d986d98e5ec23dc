import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import Hummingbird
import NIOConcurrencyHelpers

/// Keeps devices' subscriptions to topics, and lists them.
struct SubscriptionsController {
    let topics: TopicPipeline
    let gate: LoadGate

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        routes.post("v1/tenants/:tenant/topics/:topic/subscriptions") { request, context in
            try await self.change(.subscribe, request, context)
        }
        routes.post("v1/tenants/:tenant/topics/:topic/subscriptions/remove") { request, context in
            try await self.change(.unsubscribe, request, context)
        }
        routes.get("v1/tenants/:tenant/subscriptions", use: self.list)
        return routes
    }

    private func change(
        _ change: SubscriptionChange,
        _ request: Request,
        _ context: GatewayRequestContext
    ) async throws -> Response {
        let principal = try context.authenticatedPrincipal()
        try principal.checkTenant((context.parameters.get("tenant") ?? "").utf8)
        guard principal.has(.manageTopics) else {
            let origin = context.origin(method: request.method.rawValue)
            throw await self.topics.refuse(principal, change, origin: origin)
        }
        let topic = try Self.topic(context.parameters.get("topic") ?? "")
        let tokens = try SubscriptionBody(
            JSONBody.members(of: context.body, contentType: request.headers[.contentType])
        )
        .tokens
        if let rejection = self.gate.beginSubscriptions(of: tokens.count, by: principal, lag: context.lag) {
            context.notes.withLockedValue { $0.isShed = true }
            throw Refusal(rejection)
        }
        defer { self.gate.endSubscriptions(of: tokens.count, by: principal) }
        let answer = await self.topics.change(
            SubscriptionCommand(
                principal: principal,
                change: change,
                topic: topic,
                tokens: tokens,
                origin: context.origin(method: request.method.rawValue),
                deadline: context.deadline
            )
        )
        return context.answering(SubscriptionAnswer.response(to: tokens, answer))
    }

    @Sendable
    private func list(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let principal = try context.authenticatedPrincipal()
        try principal.checkTenant((context.parameters.get("tenant") ?? "").utf8)
        guard principal.has(.manageTopics) else {
            let origin = context.origin(method: request.method.rawValue)
            throw await self.topics.refuse(principal, nil, origin: origin)
        }
        let query = try QueryReader(request, allowed: ["token", "limit", "cursor"])
        let limit = try query.limit()
        let cursor = try query.cursor()
        guard let token = query.text("token") else {
            throw Refusal(.invalidField, "token must name the device whose topics are asked for")
        }
        guard RegistrationToken.isPlausible(token) else {
            throw Refusal(.invalidToken, "token is no registration token")
        }
        let answer = await self.topics.look(
            up: RegistrationCommand(
                principal: principal,
                token: token,
                part: .subscriptions,
                origin: context.origin(method: request.method.rawValue),
                deadline: context.deadline
            )
        )
        return context.answering(SubscriptionAnswer.response(answer, after: cursor, limit: limit))
    }

    /// The topic in a path, escaped as paths are.
    private static func topic(_ segment: String) throws(Refusal) -> TopicName {
        guard let topic = PercentEncoding.decoded(segment.utf8).flatMap(TopicName.init),
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
}
