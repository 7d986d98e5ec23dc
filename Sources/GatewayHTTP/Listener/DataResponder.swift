package import EventLoopHTTP
import HTTPTypes

/// Answers on the data listener: sends and their facades by the short way, everything else through the router.
package struct DataResponder: HTTPServerResponder {
    private let sending: SendRoute
    private let legacy: LegacyFacade
    private let v1: V1Facade
    private let topics: TopicFacade
    private let groups: GroupFacade
    private let routed: RoutedResponder
    private let exchange: FacadeExchange

    init(
        sending: SendRoute,
        legacy: LegacyFacade,
        v1: V1Facade,
        topics: TopicFacade,
        groups: GroupFacade,
        routed: RoutedResponder,
        exchange: FacadeExchange
    ) {
        self.sending = sending
        self.legacy = legacy
        self.v1 = v1
        self.topics = topics
        self.groups = groups
        self.routed = routed
        self.exchange = exchange
    }

    /// Everything that is served.
    var routes: [ServedRoute] {
        let topics = TopicFacadeRoute.kinds.flatMap { kind in
            kind.methods.map { ServedRoute(method: $0, template: kind.template) }
        }
        let groups = GroupFacade.methods.map { ServedRoute(method: $0, template: GroupFacade.template) }
        return self.routed.routes + topics + groups
    }

    /// Answers a request.
    package func respond(to request: HTTPServerRequest) async -> HTTPServerResponse {
        if request.head.method == .post {
            let path = request.head.pathBytes
            if let tenant = SendRoute.tenant(in: path) {
                return await self.sending.respond(to: request, tenant: tenant)
            }
            if LegacyFacade.serves(path) {
                return await self.legacy.respond(to: request)
            }
            if let project = V1Facade.project(in: path) {
                return await self.v1.respond(to: request, project: project)
            }
        }
        if GroupFacade.serves(request.head.pathBytes) {
            return await self.groups.respond(to: request)
        }
        if let route = TopicFacadeRoute(request.head.pathBytes) {
            return await self.topics.respond(to: request, route)
        }
        // Before the router, which costs as much as many a route behind it.
        if let reason = self.exchange.gate.refusal(of: request) {
            let arrival = self.exchange.began(request)
            return self.exchange.finished(self.exchange.shed(reason, in: .rest), to: request, route: "none", arrival)
        }
        return await self.routed.respond(to: request)
    }
}
