package import NIOCore
import StrictJSON

/// One request to FCM's device-group management.
package enum GroupRequest: Sendable, Hashable {
    case change(GroupChange)
    case lookUp(name: String)
}

/// A change of one device group (T10).
package struct GroupChange: Sendable, Hashable {
    /// An operation on a device group (T10, `operation`).
    package enum Operation: String, Sendable, Hashable, CaseIterable {
        case create, add, remove
    }

    /// The maximum number of members in a group, and of tokens in one change.
    package static let maxTokens = 20
    /// The maximum number of tokens that a caller may list, including repeated tokens.
    package static let maxListedTokens = 100

    package var operation: Operation
    /// The group's name. Required to create a group. For other operations it is an optional guard (G-NAMEOPT).
    package var name: String?
    /// The group's key from FCM. Required for every operation except `create`.
    package var key: String?
    /// The tokens to add or remove: 1 to 20, without repetition.
    package var tokens: [String]

    package init(_ operation: Operation, name: String?, key: String? = nil, tokens: [String]) {
        self.operation = operation
        self.name = name
        self.key = key
        self.tokens = tokens
    }
}

/// Reads requests to `/fcm/notification` (T10).
package enum GroupRequestDecoder {
    private static let nameField = "notification_key_name"

    /// Reads the body of a change. `null` and empty texts count as absent. Unknown members are dropped. The key is
    /// dropped too if the operation is `create`.
    package static func decode(_ body: ByteBuffer, contentType: String?) throws(Refusal) -> GroupRequest {
        guard LegacyFormat(contentType: contentType) == .json else {
            throw Refusal(.unsupportedMediaType, "Content-Type must be application/json")
        }
        let document: JSONDocument
        do {
            document = try JSONDocument(parsing: body, limits: .small)
        } catch {
            throw Refusal(.malformedJSON, "JSON_PARSING_ERROR: \(error.reason) at position \(error.offset).")
        }
        guard let members = document.root.members else {
            throw Refusal(.malformedJSON, "The request must be a JSON object")
        }
        var operation: String?
        var change = GroupChange(.create, name: nil, tokens: [])
        for member in members where !member.value.isNull {
            switch member.key.protocolWord {
            case "operation": operation = try member.text()
            case Self.nameField:
                guard let name = try member.text() else { continue }
                change.name = try Self.checkedName(name)
            case "notification_key":
                change.key = try member.text()
                guard change.key.map(ValueRules.isGroupKey) ?? true else {
                    let most = ValueRules.maxGroupKeyBytes
                    throw Refusal(
                        .invalidField,
                        "notification_key must have at most \(most) bytes and no control characters"
                    )
                }
            case "registration_ids": change.tokens = try Self.tokens(member.value)
            default: break
            }
        }
        guard let operation else { throw Refusal(.invalidField, "operation is missing") }
        guard let known = operation.protocolWord.flatMap(GroupChange.Operation.init) else {
            throw Refusal(.invalidField, "operation must be create, add or remove")
        }
        change.operation = known
        switch known {
        case .create:
            guard change.name != nil else { throw Refusal(.invalidField, "\(Self.nameField) is missing") }
            change.key = nil
        case .add, .remove:
            guard change.key != nil else { throw Refusal(.invalidField, "notification_key is missing") }
        }
        guard !change.tokens.isEmpty else { throw Refusal(.invalidField, "registration_ids is missing or empty") }
        return .change(change)
    }

    /// Reads the query of a look-up (G-QUERY).
    package static func decode(query: ByteBuffer) throws(Refusal) -> GroupRequest {
        guard let parameters = FormParameters.read(query) else {
            throw Refusal(.invalidField, "The query has a broken percent escape or is not UTF-8")
        }
        let names = parameters.filter { $0.name.protocolWord == Self.nameField }
        guard names.count == 1, let name = names.first?.value, !name.isEmpty else {
            throw Refusal(.invalidField, "Exactly one \(Self.nameField) is needed")
        }
        return .lookUp(name: try Self.checkedName(name))
    }

    private static func checkedName(_ name: String) throws(Refusal) -> String {
        guard ValueRules.isGroupName(name) else {
            throw Refusal(
                .invalidField,
                "\(Self.nameField) must have at most \(ValueRules.maxGroupNameBytes) bytes and no control characters"
            )
        }
        return name
    }

    /// Returns the distinct tokens, in the order of their first positions (G-TOKENS).
    private static func tokens(_ value: JSONValue) throws(Refusal) -> [String] {
        func refusal(_ demand: String) -> Refusal { Refusal(.invalidField, "registration_ids must \(demand)") }
        guard let elements = value.elements else { throw refusal("be an array of strings") }
        guard elements.count <= GroupChange.maxListedTokens else {
            throw refusal("hold at most \(GroupChange.maxListedTokens) tokens")
        }
        var tokens: [String] = []
        // Tokens are compared by bytes. Some tokens that FCM distinguishes are equal as Swift strings.
        var seen: Set<ByteBuffer> = []
        for element in elements {
            guard let token = element.string, !token.isEmpty else { throw refusal("hold strings that are not empty") }
            guard !TopicName.hasLegacyPrefix(token) else { throw refusal("not hold topics") }
            guard RegistrationToken.isWithinBounds(token) else {
                throw refusal("hold tokens of at most \(RegistrationToken.maxBytes) bytes without control characters")
            }
            guard seen.insert(ByteBuffer(string: token)).inserted else { continue }
            guard tokens.count < GroupChange.maxTokens else {
                throw refusal("hold at most \(GroupChange.maxTokens) different tokens")
            }
            tokens.append(token)
        }
        return tokens
    }
}

/// Writes requests to `/fcm/notification` (T10).
package enum GroupRequestEncoder {
    package static let path = "/fcm/notification"

    package static func path(of request: GroupRequest) -> String {
        switch request {
        case .change: Self.path
        case .lookUp(let name): "\(Self.path)?notification_key_name=\(PercentEncoding.encoded(name))"
        }
    }

    /// Returns the body of a request. Empty for a look-up.
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
