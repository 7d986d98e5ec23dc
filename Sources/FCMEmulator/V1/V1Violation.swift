/// One field that is wrong, and why (`google.rpc.BadRequest.FieldViolation`).
struct V1Violation: Sendable, Equatable {
    /// Path of the field in `snake_case`; nil where the text is no JSON at all.
    let field: String?
    let description: String

    var json: String {
        let field = self.field.map { #""field":"# + JSONValue.quoted($0) + "," } ?? ""
        return "{" + field + #""description":"# + JSONValue.quoted(self.description) + "}"
    }
}
