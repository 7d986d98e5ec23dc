import FCMModel
import GatewayCore
import HTTPTypes
import Hummingbird

/// Sends messages.
struct SendController {
    let pipeline: SendPipeline

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        routes.post("v1/tenants/:tenant/messages", use: self.send)
        return routes
    }

    @Sendable
    private func send(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let principal = try context.authenticatedPrincipal()
        try principal.checkTenant(context.parameters.get("tenant"))
        guard request.headers[.idempotencyKey] == nil else {
            // Ignoring it would break the promise that callers attach to it.
            throw Problem(.badRequest, "Idempotency-Key is not supported by this version")
        }
        let members = try JSONBody.members(of: context.body, contentType: request.headers[.contentType])
        let body = try SendBody(members)
        let target: Target
        switch body.target {
        case .direct(let direct): target = direct
        case .deviceGroup: throw Problem(.notFound, "The tenant has no device group of this name")
        }
        let payloadBytes = body.message.payloadBytes
        guard payloadBytes <= target.maxPayloadBytes else {
            throw Problem(
                .messageTooBig,
                "The payload has \(payloadBytes) bytes; at most \(target.maxPayloadBytes) are allowed for this target"
            )
        }
        let outcome = await self.pipeline.send(
            SendCommand(
                principal: principal,
                target: target,
                message: body.message,
                payloadBytes: payloadBytes,
                origin: context.origin(method: request.method.rawValue),
                deadline: context.deadline
            )
        )
        return SendAnswer(outcome: outcome, target: target).response
    }
}

extension Principal {
    /// Makes sure that a path's tenant is the caller's own; a foreign one is as good as none.
    ///
    /// - Throws: `not_found`.
    func checkTenant(_ text: String?) throws(Problem) {
        guard self.profile.id.text == text else { throw Problem(.notFound, "There is no such tenant") }
    }
}
