import FCMModel
package import GatewayCore
package import Hummingbird
package import Logging
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
    /// Whether it was not taken on; set by ``LoadMiddleware`` for those around it, which have copies of the context.
    let isShed = NIOLockedValueBox(false)
    /// The request's id; set by ``IdentityMiddleware``.
    package var requestID = ""
    /// The trace's id, where the caller sent one; set by ``TraceMiddleware``.
    package var traceID: String?
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

    /// The route's template; `none` for an address that has no route, which the router calls `NotFound`.
    var route: String {
        guard let path = self.endpointPath, path != "NotFound" else { return "none" }
        return path
    }

    /// What is recorded of this request.
    func origin(method: String) -> RequestOrigin {
        RequestOrigin(method: method, requestID: self.requestID, traceID: self.traceID)
    }

    /// Who calls.
    ///
    /// - Throws: `unauthenticated`, where a route was left without its middleware.
    func authenticatedPrincipal() throws(Problem) -> Principal {
        guard let principal = self.principal else { throw Problem(.unauthenticated) }
        return principal
    }
}

/// What a context is made from.
package struct GatewayRequestSource: RequestContextSource {
    /// The listener's logger.
    package let logger: Logger
    /// The whole body.
    package let body: ByteBuffer
    /// The caller's address.
    package let remoteAddress: String?
    /// The names in the certificate of the caller's connection.
    package let clientNames: [String]
    /// When the request was complete.
    package let receivedAt: ContinuousClock.Instant
    /// By how much its event loop is behind.
    package let lag: Duration

    /// A source.
    package init(
        logger: Logger,
        body: ByteBuffer,
        remoteAddress: String?,
        clientNames: [String] = [],
        receivedAt: ContinuousClock.Instant,
        lag: Duration = .zero
    ) {
        self.logger = logger
        self.body = body
        self.remoteAddress = remoteAddress
        self.clientNames = clientNames
        self.receivedAt = receivedAt
        self.lag = lag
    }
}
