import EventLoopHTTP
import FCMModel
import GatewayCore

/// Keeps subscriptions as FCM's own clients ask for it: by the Instance ID API, or by v1's topic subscriptions.
///
/// Requests are read and answered as those APIs have it; between the two they take the way that the REST routes take,
/// whichever API keeps the tenant's subscriptions.
struct TopicFacade: Sendable {
    private let exchange: FacadeExchange
    private let instanceID: InstanceIDFacade
    private let v1: V1TopicFacade

    init(exchange: FacadeExchange, topics: TopicPipeline) {
        self.exchange = exchange
        self.instanceID = InstanceIDFacade(exchange: exchange, topics: topics)
        self.v1 = V1TopicFacade(exchange: exchange, topics: topics)
    }

    /// Whether a path is that of a list of devices, which takes as much room as a send.
    static func takesList(at path: [UInt8]) -> Bool {
        if case .batch? = TopicFacadeRoute(path) { true } else { false }
    }

    /// Answers a request to a route.
    func respond(to request: HTTPServerRequest, _ route: TopicFacadeRoute) async -> HTTPServerResponse {
        let arrival = self.exchange.began(request)
        let reply =
            switch route {
            case .batch, .info, .relation: await self.instanceID.reply(to: request, route, arrival)
            case .collection, .subscription: await self.v1.reply(to: request, route, arrival)
            }
        return self.exchange.finished(reply, to: request, route: route.template, arrival)
    }
}
