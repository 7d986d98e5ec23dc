import EventLoopHTTP
import GatewayCore
import Hummingbird
import NIOConcurrencyHelpers

/// Counts a routed request among those in flight, or refuses it.
struct LoadMiddleware: RouterMiddleware {
    let gate: LoadGate

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        let principal = try context.authenticatedPrincipal()
        if let reason = self.gate.enter(principal, lag: context.lag) {
            let answer = self.gate.answer(reason, in: .rest)
            context.notes.withLockedValue { $0.isShed = true }
            return context.answering(answer)
        }
        defer { self.gate.leave(principal) }
        return try await next(request, context)
    }
}
