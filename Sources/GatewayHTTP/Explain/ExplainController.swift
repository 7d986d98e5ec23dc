import FCMModel
import GatewayCore
import HTTPTypes
import Hummingbird

/// Tells what a send would do: `POST /v1/tenants/{tenant}/messages/explain`.
///
/// Nothing is sent, spent or recorded.
struct ExplainController {
    let pipeline: SendPipeline
    let upstreams: UpstreamEndpoints
    let clock: any WallClock

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        routes.post("v1/tenants/:tenant/messages/explain", use: self.explain)
        return routes
    }

    @Sendable
    private func explain(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let principal = try context.authenticatedPrincipal()
        try principal.checkTenant((context.parameters.get("tenant") ?? "").utf8)
        guard principal.has(.sendMessages) else { throw Problem(.forbidden, "The key lacks the scope messages:send") }
        let body = try ExplainedBody(
            context.body,
            contentType: request.headers[.contentType],
            form: Self.form(of: request)
        )
        let command = SendCommand(
            principal: principal,
            target: body.target,
            message: body.message,
            payloadBytes: body.payloadBytes,
            origin: context.origin(method: "POST"),
            deadline: context.deadline
        )
        let explanation = SendExplanation(
            body.message,
            payloadBytes: body.payloadBytes,
            to: body.target,
            of: principal.profile,
            endpoints: self.upstreams,
            preview: await self.pipeline.preview(command),
            now: self.clock.now().seconds
        )
        return Response(json: explanation.json)
    }

    private static func form(of request: Request) throws(Problem) -> ExplainedBody.Form {
        guard let text = try QueryReader(request, allowed: ["form"]).text("form") else { return .rest }
        guard let form = ExplainedBody.Form(rawValue: text) else {
            throw Problem(.invalidField, "form must be rest or legacy")
        }
        return form
    }
}
