/// `/v1/projects/<project>/messages:send`: method, credentials and encoding, then the checks of the message.
struct V1Endpoint {
    private static let prefix = "/v1/projects/"
    private static let suffix = "/messages:send"
    private static let scheme = "Bearer "

    /// The project of a send path; `nil` for any other path.
    static func project(in path: String) -> String? {
        guard path.hasPrefix(Self.prefix), path.hasSuffix(Self.suffix),
            path.utf8.count > Self.prefix.utf8.count + Self.suffix.utf8.count
        else { return nil }
        let project = path.dropFirst(Self.prefix.count).dropLast(Self.suffix.count)
        return project.contains("/") ? nil : String(project)
    }

    let project: String
    let access: (String) -> AccessTokens.Access
    let isKnown: (String) -> Bool

    func message(in request: ReceivedRequest) throws -> AcceptedMessage {
        guard request.method == "POST" else {
            throw Refused(answer: .notFound, reason: "the method is \(request.method)")
        }
        try self.authorize(request.header("authorization"))
        guard LegacyFormat(contentType: request.header("content-type")) == .json else {
            throw V1Failure.notJSON("The content type is not application/json.")
        }
        return try self.message(request.bodyBytes)
    }

    /// Checks an `Authorization` field.
    func authorize(_ authorization: String?) throws(V1Failure) {
        guard let authorization else { throw .unauthenticated("CREDENTIALS_MISSING") }
        guard authorization.hasPrefix(Self.scheme) else { throw .unauthenticated("ACCESS_TOKEN_TYPE_UNSUPPORTED") }
        switch self.access(String(authorization.dropFirst(Self.scheme.count))) {
        case .unknown:
            throw .unauthenticated("ACCESS_TOKEN_TYPE_UNSUPPORTED")
        case .expired:
            throw .unauthenticated("ACCESS_TOKEN_EXPIRED")
        case .granted(let grant):
            guard grant.allowsSending else { throw .insufficientScopes }
            guard grant.projectID != self.project else { return }
            throw self.isKnown(self.project) ? .permissionDenied(project: self.project) : .noSuchProject
        }
    }

    private func message(_ body: [UInt8]) throws(V1Failure) -> AcceptedMessage {
        let members: [String: JSONValue]
        do {
            members = try JSONValue.members(of: body)
        } catch {
            throw .notJSON(error.reason)
        }
        let (request, notes) = try V1SchemaCheck.run(members)
        return try V1MessageRules(request, notes: notes).message()
    }
}
