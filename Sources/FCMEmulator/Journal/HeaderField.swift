/// One HTTP header field, its name spelled as sent.
package struct HeaderField: Sendable, Equatable, Encodable {
    /// The field's name.
    package var name: String

    /// The field's value.
    package var value: String

    /// Creates a field from its name and value.
    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}
