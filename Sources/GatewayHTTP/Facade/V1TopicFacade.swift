import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Answers in the words of v1's topic subscriptions.
struct V1TopicFacade: Sendable {
    private static let defaultPageSize = 1_000
    private static let maxPageSize = 2_000

    let exchange: FacadeExchange
    let topics: TopicPipeline

    /// What is answered to a request to one of the API's routes.
    func reply(
        to request: HTTPServerRequest,
        _ route: TopicFacadeRoute,
        _ arrival: RequestArrival
    ) async -> FacadeExchange.Reply {
        if let reason = self.exchange.gate.refusal(of: request) { return self.exchange.shed(reason, in: .v1) }
        guard route.methods.contains(request.head.method.rawValue) else {
            var response = HTTPServerResponse(V1Reply.methodNotAllowed)
            response.headers.append(.allow, route.methods.joined(separator: ", "))
            return FacadeExchange.Reply(response: response)
        }
        let key = request.head.fields.bytes(of: .authorization).flatMap(BearerToken.bytes(in:))
        guard let principal = self.exchange.principal(of: request, key: key, arrival) else {
            let reply = V1Reply(refusing: Rejection(code: .unauthenticated))
            return FacadeExchange.Reply(response: HTTPServerResponse(reply))
        }
        if let reason = self.exchange.gate.enter(principal, lag: request.lag) {
            return self.exchange.shed(reason, in: .v1, principal: principal)
        }
        defer { self.exchange.gate.leave(principal) }
        guard principal.has(.manageTopics) else {
            let origin = self.exchange.origin(of: request, arrival)
            let refusal = await self.topics.refuse(principal, route.change(by: request.head.method), origin: origin)
            let response = HTTPServerResponse(V1Reply(refusingSubscription: refusal.rejection))
            return FacadeExchange.Reply(response: response, principal: principal)
        }
        var quotas: [QuotaStatus] = []
        let reply: V1Reply
        switch self.reading(of: request, route, principal, arrival) {
        case .change(let command): reply = await self.change(command, &quotas)
        case .list(let command): reply = await self.list(command, request, &quotas)
        case .answered(let refusal): reply = refusal
        }
        var response = HTTPServerResponse(reply)
        response.headers.append(quotas)
        return FacadeExchange.Reply(response: response, principal: principal)
    }

    /// What a request turned out to be.
    private enum Reading {
        case change(SubscriptionCommand)
        case list(RegistrationCommand)
        case answered(V1Reply)
    }

    private func reading(
        of request: HTTPServerRequest,
        _ route: TopicFacadeRoute,
        _ principal: Principal,
        _ arrival: RequestArrival
    ) -> Reading {
        guard let path = route.v1Path, path.project == principal.profile.project else {
            return .answered(V1Reply(refusing: Rejection(code: .forbidden)))
        }
        guard !FacadeExchange.isEncoded(request) else {
            return .answered(
                .badRequest("The body must be sent without Content-Encoding", code: .unsupportedMediaType)
            )
        }
        let deadline: ContinuousClock.Instant
        do {
            deadline = try self.exchange.deadline(of: request, arrival)
        } catch {
            return .answered(.badRequest(error.detail ?? error.code.title, code: error.code))
        }
        let origin = self.exchange.origin(of: request, arrival)
        if request.head.method == .get {
            return .list(
                RegistrationCommand(
                    principal: principal,
                    token: path.token,
                    part: .subscriptions,
                    origin: origin,
                    deadline: deadline
                )
            )
        }
        let isEmpty = request.body.readableBytes == 0
        guard isEmpty || (try? JSONDocument(parsing: request.body, limits: .small))?.root.members != nil else {
            return .answered(.badRequest("Invalid JSON payload received.", code: .malformedJSON))
        }
        let given = path.topic ?? FacadeQuery(request.head.pathBytes).text("topic_name", or: "topicName")
        guard let topic = given.flatMap(TopicName.init), PercentEncoding.isAddressable(topic.text) else {
            return .answered(.badRequest("Invalid topic name", code: .invalidTarget))
        }
        return .change(
            SubscriptionCommand(
                principal: principal,
                change: request.head.method == .delete ? .unsubscribe : .subscribe,
                topic: topic,
                tokens: [path.token],
                origin: origin,
                deadline: deadline
            )
        )
    }

    private func change(_ command: SubscriptionCommand, _ quotas: inout [QuotaStatus]) async -> V1Reply {
        let answer = await self.topics.change(command)
        quotas = answer.quotas
        switch answer.content {
        case .refused(let refusal):
            return V1Reply(refusingSubscription: refusal.rejection)
        case .value(let outcomes):
            // One call is about one device.
            switch (outcomes.first ?? .rejected(.internalError), command.change) {
            case (.rejected(let rejection), _): return V1Reply(refusingSubscription: rejection)
            case (.done, .unsubscribe): return .unsubscribed
            case (.done, .subscribe):
                return .subscribed(
                    to: command.topic,
                    token: command.tokens.first ?? "",
                    project: command.principal.profile.project
                )
            }
        }
    }

    private func list(
        _ command: RegistrationCommand,
        _ request: HTTPServerRequest,
        _ quotas: inout [QuotaStatus]
    ) async -> V1Reply {
        let query = FacadeQuery(request.head.pathBytes)
        let size = query.text("page_size", or: "pageSize").map { Int(digits: $0) } ?? Self.defaultPageSize
        let cursor = query.text("page_token", or: "pageToken").map(Cursor.content(of:))
        guard let size, size >= 0, cursor != .some(nil) else {
            let name = size.map { $0 >= 0 } == true ? "page_token" : "page_size"
            return .badRequest("Invalid \(name)", code: .invalidField)
        }
        let answer = await self.topics.look(up: command)
        quotas = answer.quotas
        switch answer.content {
        case .refused(let refusal):
            return V1Reply(refusingSubscription: refusal.rejection)
        case .value(let info):
            let limit = size == 0 ? Self.defaultPageSize : min(size, Self.maxPageSize)
            let page = SubscriptionPage(info.subscriptions, after: cursor ?? nil, limit: limit)
            return .subscriptions(
                page.subscriptions,
                nextPage: page.last.map(Cursor.text(of:)),
                token: command.token,
                project: command.principal.profile.project
            )
        }
    }
}

extension TopicFacadeRoute {
    /// What a path of v1's names.
    fileprivate var v1Path: (project: String, token: String, topic: String?)? {
        switch self {
        case .batch, .info, .relation: nil
        case .collection(let project, let token): (project, token, nil)
        case .subscription(let project, let token, let topic): (project, token, topic)
        }
    }
}
