package import NIOCore
import StrictJSON

/// One request to FCM's device-group management.
package enum GroupRequest: Sendable, Hashable {
    case change(GroupChange)
    /// Asks for a key of the group of this name.
    case lookUp(name: String)
}

/// A change of one device group (T10).
package struct GroupChange: Sendable, Hashable {
    /// The most members that a group has, and that one change names.
    package static let maxTokens = 20
    /// The most tokens that a caller may list, repeated ones included.
    package static let maxListedTokens = 100

    package var operation: GroupOperation
    /// The group's name; needed to create one, a guard otherwise (G-NAMEOPT).
    package var name: String?
    /// The key that FCM gave out; needed for everything but creation.
    package var key: String?
    /// The tokens to add or remove: 1 to 20, each once.
    package var tokens: [String]

    package init(_ operation: GroupOperation, name: String?, key: String? = nil, tokens: [String]) {
        self.operation = operation
        self.name = name
        self.key = key
        self.tokens = tokens
    }
}

/// What is done to a device group (T10, `operation`).
package enum GroupOperation: String, Sendable, Hashable, CaseIterable {
    case create
    case add
    case remove
}

/// Reads requests to `/fcm/notification` (T10).
package enum GroupRequestDecoder {
    /// The query parameter, and the member, that names a group.
    private static let nameField = "notification_key_name"

    /// Reads the body of a change: `null` and empty texts count as absent, unknown members and the key of a creation
    /// are dropped.
    package static func decode(_ body: ByteBuffer, contentType: String?) throws(Refusal) -> GroupRequest {
        guard LegacyFormat(contentType: contentType) == .json else {
            throw Refusal(.unsupportedMediaType, "Content-Type must be application/json")
        }
        let document: JSONDocument
        do {
            document = try JSONDocument(parsing: body, limits: .small)
        } catch {
            throw Refusal(
                .malformedJSON,
                "JSON_PARSING_ERROR: \(error.reason) at position \(error.offset)."
            )
        }
        guard let members = document.root.members else {
            throw Refusal(.malformedJSON, "The request must be a JSON object")
        }
        var operation: String?
        var change = GroupChange(.create, name: nil, tokens: [])
        for member in members where !member.value.isNull {
            switch member.key.protocolWord {
            case "operation": operation = try Self.text(member)
            case Self.nameField: change.name = try Self.name(member)
            case "notification_key": change.key = try Self.text(member)
            case "registration_ids": change.tokens = try Self.tokens(member.value)
            default: break
            }
        }
        guard let operation else { throw Refusal(.invalidField, "operation is missing") }
        guard let known = operation.protocolWord.flatMap(GroupOperation.init) else {
            throw Refusal(.invalidField, "operation must be create, add or remove")
        }
        change.operation = known
        return .change(try Self.checked(change))
    }

    /// Reads the query of a look-up (G-QUERY).
    package static func decode(query: ByteBuffer) throws(Refusal) -> GroupRequest {
        guard let parameters = FormParameters(query) else {
            throw Refusal(.invalidField, "The query has a broken percent escape or is not UTF-8")
        }
        let names = parameters.all.filter { $0.name.protocolWord == Self.nameField }
        guard names.count == 1, let name = names.first?.value, !name.isEmpty else {
            throw Refusal(.invalidField, "Exactly one \(Self.nameField) is needed")
        }
        return .lookUp(name: try Self.checkedName(name))
    }

    private static func checkedName(_ name: String) throws(Refusal) -> String {
        guard ValueRules.isGroupName(name) else {
            throw Refusal(.invalidField, "\(Self.nameField) must have no control characters")
        }
        return name
    }

    private static func checked(_ change: GroupChange) throws(Refusal) -> GroupChange {
        var change = change
        switch change.operation {
        case .create:
            guard change.name != nil else { throw Refusal(.invalidField, "\(Self.nameField) is missing") }
            change.key = nil
        case .add, .remove:
            guard change.key != nil else { throw Refusal(.invalidField, "notification_key is missing") }
        }
        guard !change.tokens.isEmpty else { throw Refusal(.invalidField, "registration_ids is missing or empty") }
        return change
    }

    private static func text(_ member: JSONMember) throws(Refusal) -> String? {
        // Only members that this type knows come here, so that the name is no caller's text.
        guard let text = member.value.string else { throw Refusal(.invalidField, "\(member.key) must be a string") }
        return text.isEmpty ? nil : text
    }

    private static func name(_ member: JSONMember) throws(Refusal) -> String? {
        guard let name = try Self.text(member) else { return nil }
        return try Self.checkedName(name)
    }

    /// Different tokens, at their first positions (G-TOKENS).
    private static func tokens(_ value: JSONValue) throws(Refusal) -> [String] {
        guard let elements = value.elements else {
            throw Refusal(.invalidField, "registration_ids must be an array of strings")
        }
        guard elements.count <= GroupChange.maxListedTokens else {
            throw Refusal(.invalidField, "registration_ids must hold at most \(GroupChange.maxListedTokens) tokens")
        }
        var tokens: [String] = []
        // By bytes: as texts, some that FCM tells apart are equal.
        var seen: Set<ByteBuffer> = []
        for element in elements {
            guard let token = element.string, !token.isEmpty else {
                throw Refusal(.invalidField, "registration_ids must hold strings that are not empty")
            }
            guard !TopicName.hasLegacyPrefix(token) else {
                throw Refusal(.invalidField, "registration_ids must hold no topics")
            }
            guard token.utf8.count <= RegistrationToken.maxBytes else {
                throw Refusal(
                    .invalidField,
                    "registration_ids must hold tokens of at most \(RegistrationToken.maxBytes) bytes"
                )
            }
            guard seen.insert(ByteBuffer(string: token)).inserted else { continue }
            guard tokens.count < GroupChange.maxTokens else {
                throw Refusal(
                    .invalidField,
                    "registration_ids must hold at most \(GroupChange.maxTokens) different tokens"
                )
            }
            tokens.append(token)
        }
        return tokens
    }
}

/// Writes requests to `/fcm/notification` (T10).
package enum GroupRequestEncoder {
    /// Where device groups are managed.
    package static let path = "/fcm/notification"

    /// The path with the query of a request.
    package static func path(of request: GroupRequest) -> String {
        switch request {
        case .change: Self.path
        case .lookUp(let name): "\(Self.path)?notification_key_name=\(PercentEncoding.encoded(name))"
        }
    }

    /// The body of a request; empty for a look-up.
    package static func body(of request: GroupRequest) -> ByteBuffer {
        guard case .change(let change) = request else { return ByteBuffer() }
        var writer = JSONWriter(reservingCapacity: 256 + change.tokens.count * 192)
        writer.beginObject()
        writer.member("operation", change.operation.rawValue)
        if let name = change.name { writer.member("notification_key_name", name) }
        if let key = change.key { writer.member("notification_key", key) }
        writer.member("registration_ids", change.tokens)
        writer.endObject()
        return writer.finish()
    }
}
