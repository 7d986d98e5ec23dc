import FCMModel
import GatewayCore
import Hummingbird
import NIOCore
import StrictJSON

/// Feeds a tenant the tokens that it should not use any more, and takes back what was said of one.
struct RetiredTokensController {
    let retired: RetiredTokenAccess

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        routes.get("v1/tenants/:tenant/retired-tokens", use: self.list)
        routes.delete("v1/tenants/:tenant/retired-tokens", use: self.delete)
        return routes
    }

    @Sendable
    private func list(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let principal = try context.authenticatedPrincipal()
        try principal.checkTenant((context.parameters.get("tenant") ?? "").utf8)
        guard principal.has(.readTokens) else { throw Refusal(.forbidden, "The key lacks the scope tokens:read") }
        let query = try QueryReader(request, allowed: ["limit", "cursor"])
        let limit = try query.limit()
        var position = 0
        if let content = try query.cursor() {
            guard content.hasPrefix(Self.cursorPrefix),
                let place = Int(digits: content.dropFirst(Self.cursorPrefix.count)),
                place >= 0
            else { throw Cursor.refusal }
            position = place
        }
        let feed = try await self.retired.feed(
            to: principal,
            after: position,
            limit: limit,
            origin: context.origin(method: request.method.rawValue)
        )
        return Self.response(feed)
    }

    @Sendable
    private func delete(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let principal = try context.authenticatedPrincipal()
        try principal.checkTenant((context.parameters.get("tenant") ?? "").utf8)
        guard principal.has(.manageTokens) else { throw Refusal(.forbidden, "The key lacks the scope tokens:manage") }
        let query = try QueryReader(request, allowed: ["token", "fid"])
        let named: (String, RetiredTokenKind)
        switch (query.text("token"), query.text("fid")) {
        case (let token?, nil): named = (token, .token)
        case (nil, let id?): named = (id, .installation)
        case (nil, nil), (_?, _?):
            throw Refusal(.invalidField, "Either token or fid must name what is taken off the list")
        }
        let wasListed = try await self.retired.delete(
            named.0,
            named.1,
            by: principal,
            origin: context.origin(method: request.method.rawValue)
        )
        guard wasListed else { throw Refusal(.notFound, "The list of retired tokens does not have it") }
        return Response(status: .noContent)
    }

    /// Keeps cursors of other lists out.
    private static let cursorPrefix = "retired."

    private static func response(_ feed: RetiredTokenFeed) -> Response {
        let cursor = Cursor.text(of: "\(Self.cursorPrefix)\(feed.position)")
        var writer = JSONWriter(reservingCapacity: 96 + feed.tokens.count * 320)
        writer.beginObject()
        writer.key("retired_tokens")
        writer.beginArray()
        for token in feed.tokens { writer.write(token) }
        writer.endArray()
        if feed.hasMore { writer.member("next_cursor", cursor) }
        writer.member("resume_cursor", cursor)
        writer.endObject()
        return Response(json: writer.finish())
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ token: RetiredToken) {
        self.beginObject()
        switch token.kind {
        case .token: self.member("token", token.text)
        case .installation: self.member("fid", token.text)
        }
        self.member("reason", token.reason.rawValue)
        self.member("since", token.since.rfc3339)
        if let replacement = token.replacement { self.member("replacement_token", replacement) }
        self.endObject()
    }
}
