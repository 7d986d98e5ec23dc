import Foundation
import HTTPTypes

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
    ///
    /// - Throws: ``ControlError`` naming the member that is wrong.
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
            throw .badRequest("action.html makes the body itself")
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
                throw .badRequest("action.headers.\(name) is no valid header field")
            }
            // The length is the body's; another value would break the connection instead of scripting an answer.
            guard !["content-length", "transfer-encoding"].contains(name.lowercased()) else {
                throw .badRequest("action.headers.\(name) cannot be scripted; see truncate")
            }
            fields.append(HeaderField(name: name, value: value))
        }
        return fields
    }
}
