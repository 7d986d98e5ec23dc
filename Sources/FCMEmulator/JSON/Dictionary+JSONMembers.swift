/// Access to the members of an object, by name and type.
extension [String: JSONValue] {
    /// A member's text; nil if it is no string.
    func string(_ name: String) -> String? {
        guard case .string(let text)? = self[name] else { return nil }
        return text
    }

    /// A member's members; none if it is no object.
    func object(_ name: String) -> [String: JSONValue] {
        guard case .object(let members)? = self[name] else { return [:] }
        return members
    }

    /// A member's members as text.
    func strings(_ name: String) -> [String: String] {
        self.object(name).mapValues(\.text)
    }
}
