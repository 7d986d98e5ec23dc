package import EventLoopHTTP
import GatewayCore
import HTTPTypes

/// Answers on the data listener: sends and their facades by the short way, everything else through the router.
package struct DataResponder: HTTPServerResponder {
    private let sending: SendRoute
    private let legacy: LegacyFacade
    private let v1: V1Facade
    private let topics: TopicFacade
    private let groups: GroupFacade
    private let routed: RoutedResponder
    private let gate: LoadGate
    private let clock: any WallClock

    init(
        sending: SendRoute,
        legacy: LegacyFacade,
        v1: V1Facade,
        topics: TopicFacade,
        groups: GroupFacade,
        routed: RoutedResponder,
        gate: LoadGate,
        clock: any WallClock
    ) {
        self.sending = sending
        self.legacy = legacy
        self.v1 = v1
        self.topics = topics
        self.groups = groups
        self.routed = routed
        self.gate = gate
        self.clock = clock
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
        if let reason = self.gate.refusal(of: request) {
            var response = self.gate.answer(reason, in: .rest)
            response.headers.append(.requestID, RequestArrival(of: request, clock: self.clock).requestID)
            return response
        }
        return await self.routed.respond(to: request)
    }
}
