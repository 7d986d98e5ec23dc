extension CommandOutput {
    /// A list, as a table or as the API's object around it.
    ///
    /// - Parameters:
    ///   - elements: The elements.
    ///   - member: The member of the API's answer that holds them.
    ///   - columns: The members a table shows.
    ///   - json: Whether JSON is wanted.
    /// - Returns: What to print.
    /// - Throws: Whatever encoding JSON throws.
    static func list(
        _ elements: [JSONValue],
        member: String,
        columns: [String],
        json: Bool
    ) throws -> CommandOutput {
        guard !json else {
            return CommandOutput(try JSONValue.object([member: .array(elements)]).prettyText())
        }
        guard !elements.isEmpty else {
            return CommandOutput("", remark: "no \(member)")
        }
        return CommandOutput(TextTable(columns: columns, objects: elements).styled)
    }

    /// One object, as `name: value` lines or as JSON.
    ///
    /// - Parameters:
    ///   - object: The object.
    ///   - columns: The members that lines show, in order.
    ///   - json: Whether JSON is wanted.
    /// - Returns: What to print.
    /// - Throws: Whatever encoding JSON throws.
    static func object(_ object: JSONValue, columns: [String], json: Bool) throws -> CommandOutput {
        json
            ? CommandOutput(try object.prettyText()) : CommandOutput(TextTable(object: object, columns: columns).styled)
    }

    /// A change without an answer of its own.
    ///
    /// - Parameters:
    ///   - remark: What was done, for people.
    ///   - answer: What the gateway answered, `.null` for nothing.
    ///   - members: What was done, for programs, where the gateway answered nothing.
    ///   - json: Whether JSON is wanted.
    /// - Returns: What to print.
    /// - Throws: Whatever encoding JSON throws.
    static func done(
        _ remark: String,
        _ answer: JSONValue,
        members: [String: JSONValue] = [:],
        json: Bool
    ) throws -> CommandOutput {
        let answer = answer == .null && !members.isEmpty ? .object(members) : answer
        let text = json && answer != .null ? try answer.prettyText() : ""
        return CommandOutput(text, remark: remark)
    }
}
