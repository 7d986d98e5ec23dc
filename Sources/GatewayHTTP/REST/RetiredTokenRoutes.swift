import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Feeds a tenant the tokens that it should not use any more, and takes back what was said of one.
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
        let (limit, cursor) = try exchange.pageQuery()
        var start: RetiredTokenCursor?
        if let cursor {
            guard let place = Self.place(of: cursor) else { throw Cursor.refusal }
            start = place
        }
        return Self.response(try await self.retired.feed(after: start, limit: limit, by: caller))
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
            throw Refusal(.invalidField, "Either token or fid must name what is taken off the list")
        }
        guard try await self.retired.delete(named.0, named.1, by: caller) else {
            throw Refusal(.notFound, "The list of retired tokens does not have it")
        }
        return HTTPServerResponse(status: .noContent)
    }

    /// Keeps cursors of other lists out.
    private static let cursorName = "retired"

    private static func text(of place: RetiredTokenCursor) -> String {
        "\(self.cursorName).\(place.epoch).\(place.transaction).\(place.position)"
    }

    /// `nil` for a text that is not exactly one of these.
    private static func place(of text: String) -> RetiredTokenCursor? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4, let transaction = Int64(parts[2]), let position = Int64(parts[3]) else { return nil }
        let place = RetiredTokenCursor(epoch: String(parts[1]), transaction: transaction, position: position)
        return self.text(of: place) == text ? place : nil
    }

    private static func response(_ feed: RetiredTokenFeed) -> HTTPServerResponse {
        let cursor = Cursor.text(of: Self.text(of: feed.cursor))
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
