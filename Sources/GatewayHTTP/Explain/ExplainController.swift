import FCMModel
import GatewayCore
import HTTPTypes
import Hummingbird

/// Tells what a send would do: `POST /v1/tenants/{tenant}/messages/explain`.
///
/// Nothing is sent or recorded; the work costs the tenant's quota one message, and no device's or topic's.
struct ExplainController {
    let pipeline: SendPipeline
    let groups: DeviceGroups
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
        guard principal.has(.sendMessages) else { throw Refusal(.forbidden, "The key lacks the scope messages:send") }
        if let refusal = await self.pipeline.charge(principal) { throw refusal }
        let body = try ExplainedBody(
            context.body,
            contentType: request.headers[.contentType],
            form: Self.form(of: request)
        )
        let command = body.command(
            from: principal,
            origin: context.origin(method: "POST"),
            deadline: context.deadline
        )
        let explanation = SendExplanation(
            body.message,
            payloadBytes: body.payloadBytes,
            to: try await self.target(of: command),
            of: principal.profile,
            endpoints: self.upstreams,
            preview: await self.pipeline.preview(command),
            now: self.clock.now().seconds
        )
        return Response(json: explanation.json)
    }

    private static func form(of request: Request) throws(Refusal) -> ExplainedBody.Form {
        guard let text = try QueryReader(request, allowed: ["form"]).text("form") else { return .rest }
        guard let form = ExplainedBody.Form(rawValue: text) else {
            throw Refusal(.invalidField, "form must be rest or legacy")
        }
        return form
    }

    /// The target in FCM's own terms.
    ///
    /// - Throws: `not_found` for a device group whose key the gateway does not know: FCM is not asked for it here.
    private func target(of command: SendCommand) async throws(Refusal) -> Target {
        guard let name = command.groupName else { return command.target }
        guard let key = try await self.groups.stored(name, of: command.principal.profile)?.key else {
            throw Refusal(.notFound, "The gateway knows no key of such a device group; a send asks FCM for one")
        }
        return .notificationKey(key)
    }
}
