import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import StrictJSON

/// Creates, lists and revokes operators' tokens.
struct AdminTokenRoutes {
    private static let path = "/admin/v1/admin-tokens"

    let tokens: AdminTokens

    var endpoints: [any Endpoint] {
        [
            Handler(.get, Self.path, self.list),
            Handler(.post, Self.path, self.create),
            Handler(.delete, Self.path + "/{name}", self.revoke),
        ]
    }

    @Sendable
    private func list(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let (limit, after) = try exchange.pageQuery()
        let tokens = try await self.tokens.list().filter { token in after.map { $0 < token.name } ?? true }
        return .page("admin_tokens", tokens[...], limit: limit, cursor: { $0.name }) { $0.write($1, secret: nil) }
    }

    @Sendable
    private func create(_ exchange: Exchange) async throws -> HTTPServerResponse {
        var problems = FieldProblems()
        var (name, role, end): (String?, OperatorRole?, Timestamp?)
        for member in try exchange.members(limits: .small) {
            let pointer = JSONPointer().appending(member.key)
            switch member.key {
            case "name":
                name = problems.text(member.value, at: pointer)
                if let name, !Self.isName(name) {
                    problems.report(.invalidField, at: pointer, Self.nameRule)
                }
            case "role": role = problems.word(member.value, as: OperatorRole.self, at: pointer)
            case "expires_at":
                end = problems.time(member.value, at: pointer)
                if let end, end <= exchange.time {
                    problems.report(.invalidField, at: pointer, "This is in the past: the token would never be valid")
                }
            default: problems.unknown(member.key, among: ["name", "role", "expires_at"])
            }
        }
        guard let name, let role, problems.list.isEmpty else {
            throw problems.orMissing(name == nil ? "name" : "role")
        }
        let (token, secret) = try await self.tokens.create(
            name: name,
            role: role,
            expiresAt: end,
            origin: exchange.origin
        )
        var writer = JSONWriter()
        writer.write(token, secret: secret)
        var response = HTTPServerResponse(status: .created, json: writer.finish())
        response.headers.append(.cacheControl, "no-store")
        return response
    }

    @Sendable
    private func revoke(_ exchange: Exchange) async throws -> HTTPServerResponse {
        try await self.tokens.revoke(exchange.parameters.decoded("name") ?? "", origin: exchange.origin)
        return HTTPServerResponse(status: .noContent)
    }

    private static let nameRule = "This must be 1 to 63 of A-Z a-z 0-9 . _ - @, the first a letter or a digit"

    /// A name stands in paths and in the audit.
    private static func isName(_ text: String) -> Bool {
        guard text.utf8.count <= 63, let first = text.utf8.first, first.isLetter || first.isDigit else { return false }
        return text.utf8.allSatisfy { $0.isLetter || $0.isDigit || [0x2E, 0x5F, 0x2D, 0x40].contains($0) }
    }
}

extension JSONWriter {
    /// Writes a token's record. It holds the token itself only when the token is created.
    fileprivate mutating func write(_ token: AdminToken, secret: Secret?) {
        self.beginObject()
        self.member("name", token.name)
        if let secret { self.member("token", secret.revealText()) }
        self.member("role", token.role.rawValue)
        self.member("created_at", token.createdAt.rfc3339)
        if let expiresAt = token.expiresAt { self.member("expires_at", expiresAt.rfc3339) }
        self.endObject()
    }
}
