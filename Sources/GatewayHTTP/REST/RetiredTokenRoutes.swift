import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Lists the tokens that a tenant should stop using, and removes tokens from that list.
struct RetiredTokenRoutes {
    let retired: RetiredTokenAccess

    var endpoints: [any Endpoint] {
        [
            Handler(.get, "/v1/tenants/{tenant}/retired-tokens", action: .retiredTokensList, self.list),
            Handler(.delete, "/v1/tenants/{tenant}/retired-tokens", action: .retiredTokensDelete, self.delete),
        ]
    }

    @Sendable
    private func list(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        let query = try exchange.query(["limit", "cursor"])
        let owner = RetiredToken.Owner(caller.profile)
        var start: RetiredTokenFeed.Cursor?
        if let cursor = query.text("cursor") {
            guard let place = Cursor.bytes(of: cursor).flatMap({ owner.open(cursor: $0) }) else { throw Cursor.refusal }
            start = place
        }
        let feed = try await self.retired.feed(after: start, limit: try query.limit(), by: caller)
        return Self.response(feed, cursor: Cursor.text(of: try owner.seal(feed.cursor)))
    }

    @Sendable
    private func delete(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        let query = try exchange.query(["token", "fid"])
        let named: (String, RetiredToken.Kind)
        switch (query.text("token"), query.text("fid")) {
        case (let token?, nil): named = (token, .token)
        case (nil, let id?): named = (id, .installation)
        case (nil, nil), (_?, _?):
            throw Refusal(.invalidField, "Name the token or the fid to remove from the list")
        }
        guard try await self.retired.delete(named.0, named.1, by: caller) else {
            throw Refusal(.notFound, "It is not in the list of retired tokens")
        }
        return HTTPServerResponse(status: .noContent)
    }

    private static func response(_ feed: RetiredTokenFeed, cursor: String) -> HTTPServerResponse {
        var writer = JSONWriter(reservingCapacity: 96 + feed.tokens.count * 320)
        writer.beginObject()
        writer.beginArray("retired_tokens")
        for token in feed.tokens { writer.write(token) }
        writer.endArray()
        if feed.hasMore { writer.member("next_cursor", cursor) }
        writer.member("resume_cursor", cursor)
        writer.endObject()
        return HTTPServerResponse(json: writer.finish())
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ token: RetiredToken) {
        self.beginObject()
        switch token.kind {
        case .token: self.member("token", token.text)
        case .installation: self.member("fid", token.text)
        }
        self.member("reason", token.state.rawValue)
        self.member("since", token.since.rfc3339)
        if let replacement = token.replacement { self.member("replacement_token", replacement) }
        self.endObject()
    }
}
