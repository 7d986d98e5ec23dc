import Foundation
import HTTPTypes

/// A fault for the next requests that match.
package struct Fault: Sendable, Equatable {
    /// Path of the requests, without query; nil for any.
    package var path: String?
    /// A recipient of the requests, exactly as in `to`, `registration_ids`, `registration_id`, `message.token`,
    /// `message.fid` or `registration_tokens`, or in the path of a subscription; nil for any.
    package var token: String?
    /// The number of requests to play it for, at least 1.
    package var times: Int
    package var action: FaultAction

    package init(path: String? = nil, token: String? = nil, times: Int = 1, action: FaultAction) {
        precondition(times >= 1, "times must be at least 1, not \(times)")
        self.path = path
        self.token = token
        self.times = times
        self.action = action
    }

    func matches(path: String, tokens: [String]) -> Bool {
        if let expected = self.path, expected != path { return false }
        if let expected = self.token, !tokens.contains(expected) { return false }
        return true
    }
}

/// The effect of a scripted fault on a request.
package enum FaultAction: Sendable, Equatable {
    case delay(Duration)
    /// No answer until the faults are deleted; then the request is handled. Ends when the client leaves.
    case hang
    /// The connection is closed with a TCP reset, and with it all its streams; the request is not handled.
    case reset
    case status(Int, body: String?, headers: [HeaderField])
    /// Status 200 with a body that is not JSON; the request is not handled.
    case garbage
    case truncate
    /// The connection gets GOAWAY, and closes once its open streams have ended.
    ///
    /// The request is handled, unless it is refused: then GOAWAY declares it as not processed. With HTTP/1.1 the
    /// connection closes after the answer, or is reset instead of handling a refused request.
    case goAway(isRefused: Bool)
    /// The stream is refused with `REFUSED_STREAM`; the request is not handled. With HTTP/1.1 the connection is reset.
    case refuse

    package static func page(_ status: Int) -> Self {
        let page = Answer.page("Error \(status)", status: status)
        return .status(status, body: page.body, headers: page.headers)
    }

    var name: String {
        switch self {
        case .delay: "delay"
        case .hang: "hang"
        case .reset: "reset"
        case .status: "status"
        case .garbage: "garbage"
        case .truncate: "truncate"
        case .goAway: "goaway"
        case .refuse: "refuse"
        }
    }
}

/// The remaining faults, in order of addition.
struct FaultScript {
    private var faults: [Fault] = []

    var isEmpty: Bool { self.faults.isEmpty }

    var looksAtTokens: Bool { self.faults.contains { $0.token != nil } }

    mutating func add(_ fault: Fault) {
        self.faults.append(fault)
    }

    mutating func removeAll() {
        self.faults.removeAll()
    }

    mutating func take(path: String, tokens: [String]) -> FaultAction? {
        guard let index = self.faults.firstIndex(where: { $0.matches(path: path, tokens: tokens) }) else { return nil }
        let action = self.faults[index].action
        self.faults[index].times -= 1
        if self.faults[index].times == 0 {
            self.faults.remove(at: index)
        }
        return action
    }
}

/// Reading a fault from the control interface.
extension Fault {
    private static let maxTimes = 1_000_000_000
    private static let maxDelayMilliseconds = 3_600_000
    private static let statuses = 200...599
    private static let plainActions: [String: FaultAction] = [
        "hang": .hang, "reset": .reset, "garbage": .garbage, "truncate": .truncate, "refuse": .refuse,
    ]

    private static let types = "delay, hang, reset, status, garbage, truncate, goaway or refuse"

    /// Reads `{"match": {"path", "token"}, "times": n, "action": {"type", …}}`.
    ///
    /// `match`, its members and `times` (1) may be left out.
    init(members: ControlMembers) throws(ControlError) {
        try members.allow(["match", "times", "action"])
        let match = try members.object("match") ?? ControlMembers([:], path: "match")
        try match.allow(["path", "token"])
        guard let action = try members.object("action") else {
            throw .badRequest("action is missing")
        }
        self.init(
            path: try match.string("path"),
            token: try match.string("token"),
            times: try members.integer("times", in: 1...Self.maxTimes) ?? 1,
            action: try Self.action(action)
        )
    }

    private static func action(_ members: ControlMembers) throws(ControlError) -> FaultAction {
        let type = try members.string("type")
        switch type {
        case "delay":
            try members.allow(["type", "ms"])
            guard let milliseconds = try members.integer("ms", in: 0...Self.maxDelayMilliseconds) else {
                throw .badRequest("action.ms is missing")
            }
            return .delay(.milliseconds(milliseconds))
        case "status":
            return try Self.status(members)
        case "goaway":
            try members.allow(["type", "refuse"])
            return .goAway(isRefused: try members.boolean("refuse") ?? false)
        default:
            guard let action = type.flatMap({ Self.plainActions[$0] }) else {
                throw .badRequest("action.type must be \(Self.types)")
            }
            try members.allow(["type"])
            return action
        }
    }

    private static func status(_ members: ControlMembers) throws(ControlError) -> FaultAction {
        try members.allow(["type", "status", "body", "headers", "html"])
        guard let status = try members.integer("status", in: Self.statuses) else {
            throw .badRequest("action.status is missing")
        }
        let body = try members.string("body")
        if status == 204 || status == 304, body != nil {
            throw .badRequest("an answer with status \(status) has no body")
        }
        guard try members.boolean("html") ?? false else {
            return .status(status, body: body, headers: try Self.headers(members))
        }
        guard body == nil, status != 204, status != 304 else {
            throw .badRequest("action.html creates the body itself")
        }
        let page = Answer.page("Error \(status)", status: status)
        return .status(status, body: page.body, headers: page.headers + (try Self.headers(members)))
    }

    private static func headers(_ members: ControlMembers) throws(ControlError) -> [HeaderField] {
        guard let headers = try members.object("headers") else { return [] }
        var fields: [HeaderField] = []
        for name in headers.names {
            guard let value = try headers.string(name), HTTPField.Name(name) != nil, HTTPField.isValidValue(value)
            else {
                throw .badRequest("action.headers.\(name) is not a valid header field")
            }
            // Both follow from the body; another value would break the connection instead of scripting an answer.
            guard !["content-length", "transfer-encoding"].contains(name.lowercased()) else {
                throw .badRequest("action.headers.\(name) cannot be scripted; see truncate")
            }
            fields.append(HeaderField(name: name, value: value))
        }
        return fields
    }
}
