import Foundation

/// The control interface below `/_emulator/`.
struct ControlRoutes: Sendable {
    static let prefix = "/_emulator/"
    private static let defaultJournalLimit = 100
    private static let maxLimit = 1_000_000
    let emulator: FCMEmulator
    let scheme: String

    func answer(to request: ReceivedRequest) -> Answer {
        do throws(ControlError) {
            return try self.handle(request)
        } catch {
            return error.answer
        }
    }

    private func handle(_ request: ReceivedRequest) throws(ControlError) -> Answer {
        let name = request.path.dropFirst(Self.prefix.count)
        switch (name, request.method) {
        case ("journal", "GET"):
            return try self.journal(request)
        case ("deliveries", "GET"):
            return try self.deliveries(request)
        case ("subscriptions", "POST"):
            return try self.subscribe(request)
        case ("faults", "POST"):
            self.emulator.addFault(try Fault(members: ControlMembers(body: request.bodyBytes)))
            return .noContent
        case ("faults", "DELETE"):
            self.emulator.deleteFaults()
            return .noContent
        case ("state", "DELETE"):
            self.emulator.reset()
            return .noContent
        case ("service-accounts", "POST"):
            return try self.addServiceAccount(request)
        case ("service-accounts", "DELETE"):
            guard let email = try Self.query(of: request, allowed: ["client_email"])["client_email"] else {
                throw .badRequest("client_email is missing")
            }
            guard self.emulator.removeServiceAccount(clientEmail: email) else {
                throw ControlError(status: 404, message: "there is no account \(email)")
            }
            return .noContent
        case ("subject-tokens", "POST"):
            let members = try ControlMembers(body: request.bodyBytes)
            try members.allow(["project_id", "lifetime_s"])
            guard let project = try members.string("project_id") else { throw .badRequest("project_id is missing") }
            let lifetime = try members.integer("lifetime_s", in: 0...86_400) ?? 3_600
            let token = self.emulator.makeSubjectToken(projectID: project, lifetimeSeconds: lifetime)
            return .json(#"{"subject_token":\#(JSONValue.quoted(token))}"#)
        case ("machine", "POST"):
            let members = try ControlMembers(body: request.bodyBytes)
            try members.allow(["project_id"])
            self.emulator.setMachine(projectID: try members.string("project_id"))
            return .noContent
        case ("access-tokens", "DELETE"):
            self.emulator.revokeAccessTokens()
            return .noContent
        case ("connections", "GET"):
            return try Self.json(self.emulator.connectionReport)
        case ("goaway", "POST"):
            return .json(#"{"connections":\#(self.emulator.goAway())}"#)
        case ("settings", "GET"):
            return .json(self.emulator.settings.json)
        case ("settings", "POST"):
            var settings = self.emulator.settings
            try settings.apply(ControlMembers(body: request.bodyBytes))
            self.emulator.updateSettings { $0 = settings }
            return .json(settings.json)
        case ("groups", "GET"):
            return self.groups()
        case ("groups", "DELETE"):
            let query = try Self.query(of: request, allowed: ["name", "project_id"])
            guard let name = query["name"], let sender = query["project_id"] else {
                throw .badRequest("name and project_id are needed")
            }
            guard self.emulator.deleteGroup(named: name, senderID: sender) else {
                throw ControlError(status: 404, message: "there is no such group")
            }
            return .noContent
        case ("invalid-tokens", "POST"):
            let members = try ControlMembers(body: request.bodyBytes)
            try members.allow(["tokens"])
            guard let tokens = try members.strings("tokens") else { throw .badRequest("tokens is missing") }
            self.emulator.refuse(tokens: Set(tokens))
            return .noContent
        case ("registrations", "POST"):
            return try self.register(request)
        case ("registrations", "DELETE"):
            self.emulator.forgetRegistrations()
            return .noContent
        default:
            throw Self.misdirected(name: String(name), method: request.method)
        }
    }

    private static func misdirected(name: String, method: String) -> ControlError {
        let methods = [
            "journal": "GET", "deliveries": "GET", "subscriptions": "POST", "faults": "POST, DELETE",
            "state": "DELETE", "service-accounts": "POST, DELETE", "access-tokens": "DELETE", "connections": "GET",
            "goaway": "POST", "groups": "GET, DELETE", "invalid-tokens": "POST", "settings": "GET, POST",
            "registrations": "POST, DELETE", "subject-tokens": "POST", "machine": "POST",
        ]
        guard let allowed = methods[name] else {
            return ControlError(status: 404, message: "nothing is served at \(Self.prefix)\(name)")
        }
        return ControlError(status: 405, message: "\(method) is not allowed here, use \(allowed)", allow: allowed)
    }

    private func journal(_ request: ReceivedRequest) throws(ControlError) -> Answer {
        let query = try Self.query(of: request, allowed: ["limit"])
        let limit = try Self.limit(query) ?? Self.defaultJournalLimit
        return try Self.json(["entries": self.emulator.journal(limit: limit)])
    }

    private func deliveries(_ request: ReceivedRequest) throws(ControlError) -> Answer {
        let query = try Self.query(of: request, allowed: ["token", "topic", "limit"])
        let limit = try Self.limit(query) ?? Self.maxLimit
        let deliveries = self.emulator.deliveries(token: query["token"], topic: query["topic"], limit: limit)
        return try Self.json(["deliveries": deliveries])
    }

    private func subscribe(_ request: ReceivedRequest) throws(ControlError) -> Answer {
        let members = try ControlMembers(body: request.bodyBytes)
        try members.allow(["topic", "tokens"])
        guard let topic = try members.string("topic"), let tokens = try members.strings("tokens") else {
            throw .badRequest("topic and tokens are needed")
        }
        guard let count = try? self.emulator.subscribe(tokens, to: topic) else {
            throw .badRequest("topic must be a topic's name, without \(TopicName.prefix)")
        }
        return .json(#"{"subscribers":\#(count),"topic":\#(JSONValue.quoted(topic))}"#)
    }

    private static func query(
        of request: ReceivedRequest,
        allowed: Set<String>
    ) throws(ControlError) -> [String: String] {
        let text = request.target.dropFirst(request.path.count + 1)
        let fields: [(name: String, value: String)]
        do {
            fields = try FormFields.read(Array(text.utf8))
        } catch {
            throw .badRequest("the query has a \(error.reason)")
        }
        var query: [String: String] = [:]
        for (name, value) in fields {
            guard allowed.contains(name) else { throw .badRequest("unknown query parameter \(name)") }
            guard query.updateValue(value, forKey: name) == nil else { throw .badRequest("\(name) is repeated") }
        }
        return query
    }

    private static func limit(_ query: [String: String]) throws(ControlError) -> Int? {
        guard let text = query["limit"] else { return nil }
        guard let limit = Int(text), (1...Self.maxLimit).contains(limit) else {
            throw .badRequest("limit must be an integer in 1 to \(Self.maxLimit)")
        }
        return limit
    }

    private static func json(_ value: some Encodable) throws(ControlError) -> Answer {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
        }
        guard let data = try? encoder.encode(value) else {
            throw ControlError(status: 500, message: "the answer could not be written")
        }
        return .json(String(decoding: data, as: UTF8.self))
    }

    private func addServiceAccount(_ request: ReceivedRequest) throws(ControlError) -> Answer {
        let members = try ControlMembers(body: request.bodyBytes)
        try members.allow(["project_id", "client_email", "token_uri", "service_account"])
        let file: ServiceAccountFile
        if let object = try members.object("service_account") {
            try members.allow(["service_account"])
            file = try ServiceAccountFile(members: object)
        } else {
            file = try self.makeServiceAccount(members, request: request)
        }
        do throws(EmulatorError) {
            try self.emulator.addServiceAccount(file)
        } catch {
            throw .badRequest("service_account.private_key is not an RSA key in PEM of at least 2048 bits")
        }
        return .json(file.json)
    }

    private func makeServiceAccount(
        _ members: ControlMembers,
        request: ReceivedRequest
    ) throws(ControlError) -> ServiceAccountFile {
        guard let project = try members.string("project_id"), !project.isEmpty else {
            throw .badRequest("project_id is missing")
        }
        let email = try members.string("client_email")
        // The caller reaches the token endpoint at the same address as the emulator.
        let host = request.header("host") ?? "localhost"
        let uri = try members.string("token_uri") ?? "\(self.scheme)://\(host)\(TokenEndpoint.path)"
        guard let file = try? ServiceAccountFile(making: project, clientEmail: email, tokenURI: uri) else {
            throw ControlError(status: 500, message: "the key could not be made")
        }
        return file
    }

    private func register(_ request: ReceivedRequest) throws(ControlError) -> Answer {
        let members = try ControlMembers(body: request.bodyBytes)
        try members.allow(["tokens", "registered", "canonical"])
        guard let tokens = try members.strings("tokens") else { throw .badRequest("tokens is missing") }
        let isRegistered = try members.boolean("registered")
        let canonical = try members.string("canonical")
        guard isRegistered != nil || canonical != nil else {
            throw .badRequest("registered or canonical is missing")
        }
        guard isRegistered != false || canonical == nil else {
            throw .badRequest("canonical is for tokens that are registered")
        }
        guard canonical?.isEmpty != true else { throw .badRequest("canonical must not be empty") }
        let isEnded = isRegistered == false
        let unregistered = self.emulator.setRegistration(of: tokens, isEnded: isEnded, canonical: canonical)
        return .json(#"{"unregistered":\#(unregistered)}"#)
    }

    private func groups() -> Answer {
        let groups = self.emulator.groups.map { group in
            let members = group.members.map(JSONValue.quoted).joined(separator: ",")
            let (name, sender) = (JSONValue.quoted(group.name), JSONValue.quoted(group.sender))
            return #"{"name":\#(name),"project_id":\#(sender),"tokens":[\#(members)]}"#
        }
        return .json(#"{"groups":[\#(groups.joined(separator: ","))]}"#)
    }
}
