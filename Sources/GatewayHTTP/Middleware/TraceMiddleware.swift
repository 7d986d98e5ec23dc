import HTTPTypes
import Hummingbird

/// Continues the caller's trace (W3C Trace Context): its id goes into the audit.
struct TraceMiddleware: RouterMiddleware {
    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        guard let parent = request.headers[.traceParent] else { return try await next(request, context) }
        var context = context
        context.traceID = Self.traceID(in: parent)
        return try await next(request, context)
    }

    /// The trace id of `version-traceid-parentid-flags`; `nil` for text of another form or an id of zeros.
    static func traceID(in parent: String) -> String? {
        let parts = parent.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 4, parts[0].utf8.count == 2, parts[0] != "ff", parts[1].utf8.count == 32,
            parts[2].utf8.count == 16, parts[3].utf8.count == 2, parts[0] != "00" || parts.count == 4,
            parts[..<4].allSatisfy({ $0.utf8.allSatisfy(Self.isLowerHex) }),
            parts[1].contains(where: { $0 != "0" }), parts[2].contains(where: { $0 != "0" })
        else { return nil }
        return String(parts[1])
    }

    private static func isLowerHex(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
        default: false
        }
    }
}
