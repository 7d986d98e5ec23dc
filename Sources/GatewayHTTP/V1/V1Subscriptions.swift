import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// v1's topic subscriptions of a device: `/v1/projects/{project}/registrations/{token}/topicSubscriptions`.
enum V1Subscriptions {
    private static let collection = "/v1/projects/{project}/registrations/{token}/topicSubscriptions"

    static func endpoints(_ topics: TopicPipeline) -> [any Endpoint] {
        [
            Change(route: Self.route(.post, Self.collection, .topicSubscribe), change: .subscribe, topics: topics),
            List(route: Self.route(.get, Self.collection, .topicList), topics: topics),
            Change(
                route: Self.route(.delete, Self.collection + "/{topic}", .topicUnsubscribe),
                change: .unsubscribe,
                topics: topics
            ),
        ]
    }

    private static func route(_ method: HTTPRequest.Method, _ template: String, _ action: AuditRecord.Action) -> Route {
        Route(method, template)
            .with(\.action, action)
            .with(\.dialect, .v1)
            .with(\.spelling, .escaped)
    }

    private struct Change: Endpoint {
        let route: Route
        let change: SubscriptionChange
        let topics: TopicPipeline

        func read(_ exchange: Exchange) throws -> SubscriptionCall {
            let body = exchange.request.body
            let isEmpty = body.readableBytes == 0
            guard isEmpty || (try? JSONDocument(parsing: body, limits: .small))?.root.members != nil else {
                throw Refusal(.malformedJSON, "Invalid JSON payload received.")
            }
            let given =
                exchange.parameters["topic"] == nil
                ? FacadeQuery(exchange.request.head.pathBytes).text("topic_name", or: "topicName")
                : exchange.parameters.decoded("topic")
            guard let topic = given.flatMap(TopicName.init), PercentEncoding.isAddressable(topic.text) else {
                throw Refusal(.invalidTarget, "Invalid topic name")
            }
            // Undecodable text is not a token, and is refused as an invalid one.
            let token = exchange.parameters.decoded("token") ?? ""
            return SubscriptionCall(self.change, of: [token], to: topic, by: try exchange.caller)
        }

        func perform(_ call: SubscriptionCall, for exchange: Exchange) async throws -> HTTPServerResponse {
            let answer = await self.topics.change(call)
            return HTTPServerResponse(Self.reply(to: answer, call), answer.quotas)
        }

        private static func reply(to answer: ChargedAnswer<[SubscriptionOutcome]>, _ call: SubscriptionCall) -> Reply {
            switch answer.result {
            case .failure(let refusal):
                return V1ReplyWriter.reply(refusingSubscription: refusal.rejection)
            case .success(let outcomes):
                // One call is about one device.
                switch (outcomes.first ?? .rejected(.internalError), call.change) {
                case (.rejected(let rejection), _): return V1ReplyWriter.reply(refusingSubscription: rejection)
                case (.done, .unsubscribe): return V1ReplyWriter.unsubscribed
                case (.done, .subscribe):
                    return V1ReplyWriter(project: call.profile.project)
                        .reply(subscribing: call.tokens.first ?? "", to: call.topic)
                }
            }
        }
    }

    private struct List: Endpoint {
        static let defaultPageSize = 1_000
        static let maxPageSize = 2_000

        let route: Route
        let topics: TopicPipeline

        struct Work: Sendable {
            var call: RegistrationCall
            var cursor: String?
            var limit: Int
        }

        func read(_ exchange: Exchange) throws -> Work {
            let query = FacadeQuery(exchange.request.head.pathBytes)
            let size = query.text("page_size", or: "pageSize").map { Int(digits: $0) } ?? Self.defaultPageSize
            guard let size, size >= 0 else { throw Refusal(.invalidField, "Invalid page_size") }
            let cursor = query.text("page_token", or: "pageToken").map(Cursor.content(of:))
            if case .some(nil) = cursor { throw Refusal(.invalidField, "Invalid page_token") }
            let token = exchange.parameters.decoded("token") ?? ""
            let call = RegistrationCall(.subscriptions, of: token, by: try exchange.caller)
            let limit = size == 0 ? Self.defaultPageSize : min(size, Self.maxPageSize)
            return Work(call: call, cursor: cursor ?? nil, limit: limit)
        }

        func perform(_ work: Work, for exchange: Exchange) async throws -> HTTPServerResponse {
            let answer = await self.topics.look(up: work.call)
            let reply: Reply
            switch answer.result {
            case .failure(let refusal):
                reply = V1ReplyWriter.reply(refusingSubscription: refusal.rejection)
            case .success(let info):
                let page = Subscriptions.Page(info.subscriptions, after: work.cursor, limit: work.limit)
                reply = V1ReplyWriter(project: work.call.profile.project)
                    .reply(listing: page.subscriptions, of: work.call.token, nextPage: page.last.map(Cursor.text(of:)))
            }
            return HTTPServerResponse(reply, answer.quotas)
        }
    }
}
