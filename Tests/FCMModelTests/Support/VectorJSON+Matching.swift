import StrictJSON

extension VectorJSON {
    /// Compares an answer with this expectation: member order is free, numbers are equal by value, `$any` is a matcher.
    ///
    /// - Parameters:
    ///   - actual: the answer.
    ///   - allowingMore: whether the outermost object may have members beside the expected ones.
    /// - Returns: what differs, each with the path to it; empty if nothing does.
    func mismatches(in actual: VectorJSON, allowingMore: Bool = false) -> [String] {
        var found: [String] = []
        self.compare(with: actual, at: "$", allowingMore: allowingMore, found: &found)
        return found
    }

    private func compare(with actual: VectorJSON, at path: String, allowingMore: Bool, found: inout [String]) {
        switch (self, actual) {
        case (.object(let expected), _) where expected.contains { $0.key == "$any" }:
            if !Self.matcher(expected, accepts: actual) { found.append("\(path): \(actual) does not match \(self)") }
        case (.object(let expected), .object(let members)):
            for member in expected {
                guard let other = members.first(where: { Self.same($0.key, member.key) }) else {
                    found.append("\(path).\(member.key) is missing")
                    continue
                }
                member.value.compare(
                    with: other.value,
                    at: "\(path).\(member.key)",
                    allowingMore: false,
                    found: &found
                )
            }
            for member in members where !allowingMore && !expected.contains(where: { Self.same($0.key, member.key) }) {
                found.append("\(path).\(member.key) is too much")
            }
        case (.array(let expected), .array(let elements)):
            if expected.count != elements.count {
                found.append("\(path) has \(elements.count) elements, not \(expected.count)")
            }
            for (index, pair) in zip(expected, elements).enumerated() {
                pair.0.compare(with: pair.1, at: "\(path)[\(index)]", allowingMore: false, found: &found)
            }
        case (.string(let expected), .string(let text)) where Self.same(expected, text): break
        case (.number(let expected), .number(let number))
        where DecimalValue(expected.text) == DecimalValue(number.text): break
        case (.bool(let expected), .bool(let flag)) where expected == flag: break
        case (.null, .null): break
        default: found.append("\(path) is \(actual), not \(self)")
        }
    }

    /// Whether a `$any` accepts a value; one that is not known accepts nothing.
    private static func matcher(_ members: [Member], accepts actual: VectorJSON) -> Bool {
        guard members.count == 1, case .string(let kind)? = members.first?.value else { return false }
        switch (kind, actual) {
        case ("positive_int", .number(let number)):
            return number.isPlainInteger && number.integer.map { (1...(1 << 53 - 1)).contains($0) } ?? false
        case ("nonempty_string", .string(let text)):
            return !text.isEmpty
        default:
            return false
        }
    }

    /// Equality of bytes; `==` would take composed and decomposed letters for one another.
    private static func same(_ text: String, _ other: String) -> Bool {
        text.utf8.elementsEqual(other.utf8)
    }
}
