package import NIOCore
import StrictJSON

/// Reads requests to `/fcm/notification` (T10).
package enum GroupRequestDecoder {
    /// The query parameter, and the member, that names a group.
    private static let nameField = "notification_key_name"

    /// Reads the body of a change.
    ///
    /// `null` and empty texts count as absent, unknown members and the key of a creation are dropped.
    ///
    /// - Throws: what is wrong with it.
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
    ///
    /// - Throws: what is wrong with it.
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
