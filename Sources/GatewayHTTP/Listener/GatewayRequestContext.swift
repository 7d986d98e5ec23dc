import EventLoopHTTP
import FCMModel
package import GatewayCore
package import Hummingbird
import NIOConcurrencyHelpers
package import NIOCore

/// What is known of a request beside the request itself.
package struct GatewayRequestContext: RequestContext {
    /// What a context is made from.
    package typealias Source = GatewayRequestSource

    /// Hummingbird's own part: parameters, the route's template, the logger.
    package var coreContext: CoreRequestContextStorage
    /// The whole body.
    package var body: ByteBuffer
    /// The caller's address, without the port.
    package let remoteAddress: String?
    /// The names in the certificate of the caller's connection.
    let clientNames: [String]
    /// When the request was complete.
    package let receivedAt: ContinuousClock.Instant
    /// By how much its event loop is behind.
    package let lag: Duration
    /// What those further in found out.
    let notes = NIOLockedValueBox(RequestNotes())
    /// The request's id; set by ``IdentityMiddleware``.
    package var requestID = ""
    /// The trace that it belongs to, if it belongs to one; set by ``TraceMiddleware``.
    package var trace: RequestTrace?
    /// When the caller stops waiting; set by ``DeadlineMiddleware``.
    package var deadline: ContinuousClock.Instant
    /// Who calls; set by ``AuthenticationMiddleware``.
    package var principal: Principal?

    /// A context for a request that just arrived.
    package init(source: GatewayRequestSource) {
        self.coreContext = CoreRequestContextStorage(source: source)
        self.body = source.body
        self.remoteAddress = source.remoteAddress
        self.clientNames = source.clientNames
        self.receivedAt = source.receivedAt
        self.lag = source.lag
        self.deadline = source.receivedAt
    }

    /// The route's template; `nil` for an address that has no route, which the router calls `NotFound`.
    var template: String? {
        guard let path = self.endpointPath, path != "NotFound" else { return nil }
        return path
    }

    /// The same for metrics and logs, where `none` stands for no route.
    var route: String { self.template ?? "none" }

    /// Whose request it is, or whom it is about: a name that a tenant can have, so that nothing else that stands in a path
    /// gets into logs.
    var tenantName: String? {
        if let principal = self.notes.withLockedValue({ $0.principal }) { return principal.profile.id.text }
        return self.parameters.get("tenant").flatMap { TenantID($0) }?.text
    }

    /// Hands an answer of the gateway's own to the router, and notes why it is a refusal, if it is one.
    func answering(_ answer: HTTPServerResponse) -> Response {
        self.notes.withLockedValue { $0.code = answer.code }
        return Response(answer)
    }

    /// What is recorded of this request.
    func origin(method: String) -> RequestOrigin {
        RequestOrigin(method: method, requestID: self.requestID, trace: self.trace)
    }

    /// Who calls.
    ///
    /// - Throws: `unauthenticated`, where a route was left without its middleware.
    func authenticatedPrincipal() throws(Refusal) -> Principal {
        guard let principal = self.principal else { throw Refusal(.unauthenticated) }
        return principal
    }
}
