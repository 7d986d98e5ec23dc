extension VectorJSON {
    /// The value with `$repeat`, `$concat` and `$list` carried out, inner markers before outer ones.
    ///
    /// Matchers (`$any`) stay; ``mismatches(in:allowingMore:)`` understands them.
    func expanded() throws -> VectorJSON {
        switch self {
        case .string, .number, .bool, .null:
            return self
        case .array(let elements):
            return .array(try elements.map { try $0.expanded() })
        case .object(let members):
            let members = try members.map { Member(key: $0.key, value: try $0.value.expanded()) }
            return try Self.marker(members) ?? .object(members)
        }
    }

    /// The value that a marker stands for; `nil` if the members are none.
    private static func marker(_ members: [Member]) throws -> VectorJSON? {
        guard members.contains(where: { ["$repeat", "$concat", "$list"].contains($0.key) }) else { return nil }
        var marker = VectorMembers(members)
        let value: VectorJSON
        if let text = marker.takeIfPresent("$repeat") {
            value = .string(String(repeating: try text.text(), count: try marker.take("times").integer()))
        } else if let parts = marker.takeIfPresent("$concat") {
            value = .string(try parts.elements().map { try $0.text() }.joined())
        } else {
            let template = try marker.take("$list")
            let count = try marker.take("count").integer()
            value = .array((0..<count).map { template.numbered($0) })
        }
        try marker.finish()
        return value
    }

    /// A copy of a `$list` template, in which `{i}` is a number.
    private func numbered(_ index: Int) -> VectorJSON {
        switch self {
        case .number, .bool, .null: self
        case .string(let text): .string(text.replacing("{i}", with: String(index)))
        case .array(let elements): .array(elements.map { $0.numbered(index) })
        case .object(let members): .object(members.map { Member(key: $0.key, value: $0.value.numbered(index)) })
        }
    }
}
