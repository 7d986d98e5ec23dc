import Foundation

/// The control interface below `/_emulator/`.
struct ControlRoutes: Sendable {
    /// What every path of the interface starts with.
    static let prefix = "/_emulator/"

    private static let defaultJournalLimit = 100
    private static let maxLimit = 1_000_000

    let state: EmulatorState
    /// Scheme of the URLs it hands out.
    let scheme: String

    /// Answers one control request, which leaves no trace in the journal.
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
            self.state.addFault(try Fault(members: ControlMembers(body: request.bodyBytes)))
            return .noContent
        case ("faults", "DELETE"):
            self.state.deleteFaults()
            return .noContent
        case ("state", "DELETE"):
            self.state.reset()
            return .noContent
        default:
            if let answer = try self.handleCredentials(request, name: name) { return answer }
            if let answer = try self.handleConnections(request, name: name) { return answer }
            if let answer = try self.handleGroups(request, name: name) { return answer }
            if let answer = try self.handleRegistrations(request, name: name) { return answer }
            throw Self.misdirected(name: String(name), method: request.method)
        }
    }

    private static func misdirected(name: String, method: String) -> ControlError {
        let methods = [
            "journal": "GET", "deliveries": "GET", "subscriptions": "POST", "faults": "POST, DELETE",
            "state": "DELETE", "service-accounts": "POST, DELETE", "access-tokens": "DELETE", "connections": "GET",
            "goaway": "POST", "groups": "GET, DELETE", "invalid-tokens": "POST", "settings": "GET, POST",
            "registrations": "POST, DELETE",
        ]
        guard let allowed = methods[name] else {
            return ControlError(status: 404, message: "nothing is served at \(Self.prefix)\(name)")
        }
        return ControlError(status: 405, message: "\(method) is not allowed here, use \(allowed)", allow: allowed)
    }

    private func journal(_ request: ReceivedRequest) throws(ControlError) -> Answer {
        let query = try Self.query(of: request, allowed: ["limit"])
        let limit = try Self.limit(query) ?? Self.defaultJournalLimit
        return try Self.json(["entries": self.state.journal(limit: limit)])
    }

    private func deliveries(_ request: ReceivedRequest) throws(ControlError) -> Answer {
        let query = try Self.query(of: request, allowed: ["token", "topic", "limit"])
        let limit = try Self.limit(query) ?? Self.maxLimit
        let deliveries = self.state.deliveries(token: query["token"], topic: query["topic"], limit: limit)
        return try Self.json(["deliveries": deliveries])
    }

    private func subscribe(_ request: ReceivedRequest) throws(ControlError) -> Answer {
        let members = try ControlMembers(body: request.bodyBytes)
        try members.allow(["topic", "tokens"])
        guard let topic = try members.string("topic"), let tokens = try members.strings("tokens") else {
            throw .badRequest("topic and tokens are needed")
        }
        guard TopicName.isValid(topic.utf8) else {
            throw .badRequest("topic must be a topic's name, without \(TopicName.prefix)")
        }
        let count = self.state.subscribe(tokens, to: topic, at: request.time)
        return .json(#"{"subscribers":\#(count),"topic":\#(JSONValue.quoted(topic))}"#)
    }

    static func query(
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

    static func json(_ value: some Encodable) throws(ControlError) -> Answer {
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
}
