import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes

/// Answers in the words of the Instance ID API.
struct InstanceIDFacade: Sendable {
    let exchange: FacadeExchange
    let topics: TopicPipeline

    /// What is answered to a request to one of the API's routes.
    func reply(
        to request: HTTPServerRequest,
        _ route: TopicFacadeRoute,
        _ arrival: RequestArrival
    ) async -> FacadeExchange.Reply {
        if let reason = self.exchange.gate.refusal(of: request) { return self.exchange.shed(reason, in: .instanceID) }
        guard route.methods.contains(request.head.method.rawValue) else {
            return FacadeExchange.Reply(
                response: HTTPServerResponse(
                    InstanceIDReply(Refusal(.methodNotAllowed)),
                    allow: route.methods
                )
            )
        }
        let key = request.head.fields.bytes(of: .authorization).flatMap(LegacyKey.bytes(in:))
        guard let principal = self.exchange.principal(of: request, key: key, arrival) else {
            return FacadeExchange.Reply(
                response: HTTPServerResponse(InstanceIDReply(Refusal(.unauthenticated)))
            )
        }
        if let reason = self.exchange.gate.enter(principal, lag: request.lag) {
            return self.exchange.shed(reason, in: .instanceID, principal: principal)
        }
        defer { self.exchange.gate.leave(principal) }
        var quotas: [QuotaStatus] = []
        let reply: InstanceIDReply
        do throws(Refusal) {
            guard principal.has(.manageTopics) else {
                let origin = self.exchange.origin(of: request, arrival)
                let refusal = await self.topics.refuse(principal, route.change(by: request.head.method), origin: origin)
                throw Refusal(refusal.rejection)
            }
            let ask = try self.ask(request, arrival, of: principal)
            switch route {
            case .batch(let change):
                reply = try await self.batch(ask, change, request, &quotas)
            case .relation(let token, let topic):
                reply = try await self.relation(ask, token, topic, request, &quotas)
            case .info(let token):
                reply = try await self.info(ask, token, request, &quotas)
            case .collection, .subscription:
                throw Refusal(.notFound)
            }
        } catch {
            reply = InstanceIDReply(error)
        }
        var response = HTTPServerResponse(reply)
        response.headers.append(quotas)
        return FacadeExchange.Reply(response: response, principal: principal)
    }

    /// What every request has.
    private struct Ask {
        let principal: Principal
        let origin: RequestOrigin
        let deadline: ContinuousClock.Instant
    }

    private func ask(
        _ request: HTTPServerRequest,
        _ arrival: RequestArrival,
        of principal: Principal
    ) throws(Refusal) -> Ask {
        guard !FacadeExchange.isEncoded(request) else {
            throw Refusal(.unsupportedMediaType, "The body must be sent without Content-Encoding")
        }
        do {
            return Ask(
                principal: principal,
                origin: self.exchange.origin(of: request, arrival),
                deadline: try self.exchange.deadline(of: request, arrival)
            )
        } catch {
            throw Refusal(error.code, error.detail ?? error.code.title)
        }
    }

    private func batch(
        _ ask: Ask,
        _ change: SubscriptionChange,
        _ request: HTTPServerRequest,
        _ quotas: inout [QuotaStatus]
    ) async throws(Refusal) -> InstanceIDReply {
        let batch = try InstanceIDBatch(parsing: request.body)
        let devices = batch.tokens.count
        if let rejection = self.exchange.gate.beginSubscriptions(of: devices, by: ask.principal, lag: request.lag) {
            throw Refusal(rejection)
        }
        defer { self.exchange.gate.endSubscriptions(of: devices, by: ask.principal) }
        let answer = await self.change(ask, change, batch.topic, batch.tokens)
        quotas = answer.quotas
        switch answer.content {
        case .value(let outcomes):
            return InstanceIDReply(outcomes)
        case .refused(let refusal) where refusal.code == .tenantRateExceeded:
            // As legacy FCM has it for limits: each device's own error, which clients know how to repeat.
            return InstanceIDReply(Array(repeating: .rejected(refusal.rejection), count: batch.tokens.count))
        case .refused(let refusal):
            throw refusal.withoutCredential
        }
    }

    private func relation(
        _ ask: Ask,
        _ token: String,
        _ topic: String,
        _ request: HTTPServerRequest,
        _ quotas: inout [QuotaStatus]
    ) async throws(Refusal) -> InstanceIDReply {
        guard let topic = TopicName(topic), PercentEncoding.isAddressable(topic.text) else {
            throw Refusal(.invalidField, "The path names no topic")
        }
        let change: SubscriptionChange = request.head.method == .delete ? .unsubscribe : .subscribe
        let answer = await self.change(ask, change, topic, [token])
        quotas = answer.quotas
        switch answer.content {
        case .value([.done]): return .done
        case .value(let outcomes):
            guard case .rejected(let rejection)? = outcomes.first else { throw Refusal(.internalError) }
            throw Refusal(rejection)
        case .refused(let refusal): throw refusal.withoutCredential
        }
    }

    private func change(
        _ ask: Ask,
        _ change: SubscriptionChange,
        _ topic: TopicName,
        _ tokens: [String]
    ) async -> TopicAnswer<[SubscriptionOutcome]> {
        await self.topics.change(
            SubscriptionCommand(
                principal: ask.principal,
                change: change,
                topic: topic,
                tokens: tokens,
                origin: ask.origin,
                deadline: ask.deadline
            )
        )
    }

    private func info(
        _ ask: Ask,
        _ token: String,
        _ request: HTTPServerRequest,
        _ quotas: inout [QuotaStatus]
    ) async throws(Refusal) -> InstanceIDReply {
        let answer = await self.topics.look(
            up: RegistrationCommand(
                principal: ask.principal,
                token: token,
                part: .everything,
                origin: ask.origin,
                deadline: ask.deadline
            )
        )
        quotas = answer.quotas
        switch answer.content {
        case .value(let info):
            let details = FacadeQuery(request.head.pathBytes).text("details")
            return InstanceIDReply(info, includesTopics: details?.lowercased() == "true")
        case .refused(let refusal):
            throw refusal.withoutCredential
        }
    }
}

extension HTTPServerResponse {
    /// An answer of the Instance ID API's on its way out.
    init(_ reply: InstanceIDReply, allow methods: [String] = []) {
        var headers: HTTPHeaderLines = [.contentType: "application/json; charset=UTF-8"]
        if let retryAfter = reply.retryAfter { headers.append(.retryAfter, String(retryAfter)) }
        if !methods.isEmpty { headers.append(.allow, methods.joined(separator: ", ")) }
        switch reply.status {
        case 401: headers.append(.wwwAuthenticate, "Bearer")
        case 415: headers.append(.acceptEncoding, "identity")
        default: break
        }
        self.init(status: HTTPResponse.Status(code: reply.status), headers: headers, body: reply.body)
        self.code = reply.code?.rawValue
    }
}

extension Refusal {
    /// That the gateway lacks a credential is an internal error to a caller in FCM's own words.
    fileprivate var withoutCredential: Refusal {
        var refusal = self
        if refusal.code == .upstreamCredentials { refusal.detail = nil }
        return refusal
    }
}
