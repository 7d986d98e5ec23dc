/// `/fcm/notification`: method, credentials and sender id, then the form of the request.
struct GroupEndpoint {
    static let path = "/fcm/notification"
    private static let nameField = "notification_key_name"
    private static let members: Set<String> = ["operation", nameField, "notification_key", "registration_ids"]

    let legacy: LegacyEndpoint
    let access: (String) -> AccessTokens.Access

    func command(in request: ReceivedRequest) throws -> GroupCommand {
        guard request.method == "POST" || request.method == "GET" else {
            throw Refused(answer: .methodNotAllowed(allow: "GET, POST"), reason: "the method is \(request.method)")
        }
        if let reason = self.refusal(of: request) { throw Refused(answer: .unauthorized, reason: reason) }
        guard let sender = request.header("project_id"), !sender.isEmpty, sender.utf8.allSatisfy(Self.isDigit) else {
            throw Refused(answer: .unauthorized, reason: "project_id is missing or not a sender id")
        }
        return request.method == "GET"
            ? try Self.lookUp(request, sender: sender) : try Self.change(request, sender: sender)
    }

    // MARK: Credentials

    private func refusal(of request: ReceivedRequest) -> String? {
        let scheme = "Bearer "
        guard let authorization = request.header("authorization"), authorization.hasPrefix(scheme) else {
            return self.legacy.refusal(of: request.header("authorization"))
        }
        guard request.header("access_token_auth") == "true" else { return "access_token_auth is not true" }
        switch self.access(String(authorization.dropFirst(scheme.count))) {
        case .unknown: return "unknown access token"
        case .expired: return "the access token has expired"
        case .granted(let grant): return grant.allowsSending ? nil : "the access token is not for sending"
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    // MARK: The request

    private static func lookUp(_ request: ReceivedRequest, sender: String) throws(GroupFailure) -> GroupCommand {
        let query = request.target.dropFirst(request.path.count + 1)
        guard let fields = try? FormFields.read(Array(query.utf8)) else {
            throw .malformed("the query can't be decoded")
        }
        guard fields.count == 1, let field = fields.first, field.name == Self.nameField, !field.value.isEmpty else {
            throw .malformed("exactly one \(Self.nameField) is needed, and nothing else")
        }
        return .lookUp(name: field.value, sender: sender)
    }

    private static func change(_ request: ReceivedRequest, sender: String) throws(GroupFailure) -> GroupCommand {
        guard LegacyFormat(contentType: request.header("content-type")) == .json else {
            throw .malformed("the content type is not application/json")
        }
        let members: [String: JSONValue]
        do {
            members = try JSONValue.members(of: request.bodyBytes)
        } catch {
            throw .malformed("JSON_PARSING_ERROR: \(error.reason)")
        }
        if let unknown = members.keys.sorted().first(where: { !Self.members.contains($0) }) {
            throw .malformed("unknown member \(unknown)")
        }
        let operation = try Self.text("operation", members)
        let name = try Self.text(Self.nameField, members)
        let key = try Self.text("notification_key", members)
        let tokens = try Self.tokens(members)
        switch (operation, name, key) {
        case ("create", let name?, nil): return .create(name: name, sender: sender, tokens: tokens)
        case ("create", nil, _): throw .malformed("\(Self.nameField) is missing")
        case ("create", _, _): throw .malformed("notification_key is not for create")
        case ("add", _, let key?): return .add(key: key, name: name, sender: sender, tokens: tokens)
        case ("remove", _, let key?): return .remove(key: key, name: name, sender: sender, tokens: tokens)
        case ("add", _, nil), ("remove", _, nil): throw .malformed("notification_key is missing")
        default: throw .malformed("operation must be create, add or remove")
        }
    }

    private static func text(_ name: String, _ members: [String: JSONValue]) throws(GroupFailure) -> String? {
        guard let value = members[name] else { return nil }
        guard case .string(let text) = value, !text.isEmpty else {
            throw .malformed("\(name) must be a string that is not empty")
        }
        return text
    }

    private static func tokens(_ members: [String: JSONValue]) throws(GroupFailure) -> [String] {
        guard case .array(let entries)? = members["registration_ids"], !entries.isEmpty else {
            throw .malformed("registration_ids must be an array that is not empty")
        }
        var tokens: [String] = []
        for entry in entries {
            guard case .string(let token) = entry, !token.isEmpty else {
                throw .malformed("registration_ids must hold strings that are not empty")
            }
            tokens.append(token)
        }
        guard tokens.count <= GroupRegistry.maxMembers else { throw .tooMany }
        return tokens
    }
}

/// The reason why a request to manage device groups is refused; always status 400.
enum GroupFailure: RequestRefusal, Equatable {
    case alreadyExists
    case notFound
    case noValidTokens
    case damagedKey
    case tooMany
    case malformed(String)

    var reason: String {
        switch self {
        case .alreadyExists: "notification_key already exists"
        case .notFound: "notification_key not found"
        case .noValidTokens: "no valid registration ids"
        case .damagedKey: "Error decrypting GroupToken"
        case .tooMany: "a group has at most \(GroupRegistry.maxMembers) registration ids"
        case .malformed(let reason): reason
        }
    }

    var answer: Answer {
        .json(#"{"error":"# + JSONValue.quoted(self.reason) + "}", status: 400)
    }
}
