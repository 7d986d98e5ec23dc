import GatewayCore
import Hummingbird
import Logging

/// A listener's routes and the middleware before them.
struct ListenerRouting {
    /// Tells the time.
    let clock: any WallClock
    /// Measures requests.
    let metrics: HTTPMetrics
    /// What stands before the guarded routes, outermost first.
    let guards: [any MiddlewareProtocol<Request, Response, GatewayRequestContext>]
    /// Routes that need no credentials.
    let open: [RouteCollection<GatewayRequestContext>]
    /// Routes behind the guards.
    let guarded: [RouteCollection<GatewayRequestContext>]
    /// Templates of `POST` routes that are answered without the router.
    var direct: [String] = []
    /// The listener's logger.
    let logger: Logger
    /// Writes a line for every request.
    let accessLog: AccessLog
    /// Finds out to which traces requests belong.
    let tracer: RequestTracer

    /// Builds what answers requests.
    ///
    /// This is the one place that fixes the order of middleware: identity, tracing, metrics, access log, problem
    /// rendering, then the listener's guards (deadline, authentication, load), then the refusal of idempotency keys. Each
    /// sees what those before it established,
    /// and an answer passes them the other way, so that a rendered problem is logged and measured like any answer.
    var responder: RoutedResponder {
        let router = Router(context: GatewayRequestContext.self)
        router.add(middleware: IdentityMiddleware(clock: self.clock))
        router.add(middleware: TraceMiddleware(tracer: self.tracer))
        router.add(middleware: MetricsMiddleware(metrics: self.metrics))
        router.add(middleware: AccessLogMiddleware(log: self.accessLog))
        router.add(middleware: ProblemMiddleware(rendering: self.rendering))
        for collection in self.open {
            router.addRoutes(collection)
        }
        let group = router.group()
        for middleware in self.guards {
            group.add(middleware: middleware)
        }
        group.add(middleware: IdempotencyKeyMiddleware())
        for collection in self.guarded {
            group.addRoutes(collection)
        }
        return RoutedResponder(responder: router.buildResponder(), routes: self.table.routes, logger: self.logger)
    }

    /// Renders what routes throw.
    var rendering: ProblemRendering {
        ProblemRendering(routes: self.table, logger: self.logger)
    }

    /// The same routes without anything before them, to look methods up in.
    private var table: RouteTable {
        let router = Router(context: GatewayRequestContext.self)
        for collection in self.open + self.guarded {
            router.addRoutes(collection)
        }
        return RouteTable(router, direct: self.direct)
    }
}
