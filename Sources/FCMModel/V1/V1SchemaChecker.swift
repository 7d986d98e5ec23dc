import StrictJSON

/// Checks a body against the fields that v1 has, as Google's front end and then FCM do: names and types of everything
/// come before values.
struct V1SchemaChecker {
    /// The first value that its field can't have.
    private(set) var badValue: Refusal?

    /// Checks an object and all that v1 knows within it; `null` is absent, wherever it stands.
    ///
    /// - Parameters:
    ///   - value: what should be an object.
    ///   - schema: its fields.
    ///   - path: where it stands.
    /// - Throws: the first unknown name or wrong type.
    mutating func check(_ value: JSONValue, _ schema: V1Schema, at path: String) throws(Refusal) {
        guard let members = value.members else { throw .wrongType(path, "an object") }
        var seen = Array(repeating: false, count: schema.count)
        for member in members {
            let name = member.key
            guard let field = schema[name] else { throw .unknown(Refusal.path(path, name)) }
            guard !seen[field.index] else { throw .repeated(Refusal.path(path, field.name)) }
            seen[field.index] = true
            guard !member.value.isNull else { continue }
            try self.check(member.value, field.kind, at: Refusal.path(path, field.name))
        }
    }

    private mutating func check(_ value: JSONValue, _ kind: V1Schema.Kind, at path: String) throws(Refusal) {
        switch kind {
        case .text, .color, .label, .link, .choice, .duration, .timeToLive:
            guard value.kind == .string else { throw .wrongType(path, "TYPE_STRING") }
            self.checkText(value, kind, at: path)
        case .flag:
            guard value.bool != nil else { throw .wrongType(path, "TYPE_BOOL") }
        case .count:
            guard Self.isWhole(value) else { throw .wrongType(path, "TYPE_INT32") }
        case .number:
            guard value.number != nil else { throw .wrongType(path, "TYPE_FLOAT") }
        case .texts, .durations:
            guard let elements = value.elements else { throw .wrongType(path, "a list of TYPE_STRING") }
            for element in elements {
                guard element.kind == .string else { throw .wrongType(path, "a list of TYPE_STRING") }
                if case .durations = kind { self.checkText(element, .duration, at: path) }
            }
        case .textMap:
            guard let members = value.members else { throw .wrongType(path, "a map of TYPE_STRING") }
            for member in members where member.value.kind != .string && !member.value.isNull {
                throw .wrongType(Refusal.path(path, member.key), "TYPE_STRING")
            }
        case .structure:
            guard value.members != nil else { throw .wrongType(path, "an object") }
        case .message(let schema):
            try self.check(value, schema, at: path)
        }
    }

    /// Notes a text that its field can't have; the empty text is absent.
    private mutating func checkText(_ value: JSONValue, _ kind: V1Schema.Kind, at path: String) {
        if case .text = kind { return }
        guard self.badValue == nil, let text = value.string, !text.isEmpty else { return }
        let demand: String? =
            switch kind {
            case .color: ValueRules.isColor(text) ? nil : "# and six hexadecimal digits"
            case .label: Self.isLabel(text) ? nil : "1 to 50 characters of A-Z a-z 0-9 - _ . ~ %"
            case .link: ValueRules.isHTTPS(text) ? nil : "an address with https"
            case .choice(let words, let inAnyCase):
                text.protocolWord.map { words.contains(inAnyCase ? $0.uppercased() : $0) } ?? false
                    ? nil : "one of \(words.joined(separator: ", "))"
            case .duration: V1Duration(text) == nil ? "a duration such as 3.5s" : nil
            case .timeToLive:
                Self.isTimeToLive(text) ? nil : "a duration such as 3600s, at most \(Message.maxTimeToLive)s"
            case .text, .flag, .count, .number, .texts, .durations, .textMap, .structure, .message: nil
            }
        if let demand { self.badValue = .badValue(path, demand) }
    }

    private static func isWhole(_ value: JSONValue) -> Bool {
        let number = value.number ?? value.string.flatMap { JSONNumber(text: $0) }
        return number?.integer.flatMap { Int32(exactly: $0) } != nil
    }

    private static func isLabel(_ text: String) -> Bool {
        text.utf8.count <= 50 && text.utf8.allSatisfy(TopicName.isTopicCharacter)
    }

    private static func isTimeToLive(_ text: String) -> Bool {
        guard let duration = V1Duration(text) else { return false }
        return ValueRules.isTimeToLive(duration.roundedUp)
    }
}
