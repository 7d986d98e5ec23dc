import GatewayCore
import HTTPTypes
import Hummingbird

/// Gives each request an id, the caller's own where it is sane, and echoes it.
struct IdentityMiddleware: RouterMiddleware {
    let clock: any WallClock

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        context.requestID = Self.requestID(given: request.headers[.requestID], now: self.clock.now())
        var response = try await next(request, context)
        response.headers[.requestID] = context.requestID
        return response
    }

    /// The caller's own id where it is sane, else a new one.
    static func requestID(given id: String?, now: Timestamp) -> String {
        if let id, Self.isSane(id) { return id }
        return UUIDv7.generate(at: now)
    }

    /// 1 to 128 characters that are harmless in headers, logs and queries.
    private static func isSane(_ id: String) -> Bool {
        (1...128).contains(id.utf8.count)
            && id.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                    true
                default:
                    false
                }
            }
    }
}
