import StrictJSON

extension JSONValue {
    /// A member by its name in `snake_case` or in `lowerCamelCase`; `null` is absent.
    ///
    /// - Parameters:
    ///   - name: the name in `snake_case`.
    ///   - camelCase: its other spelling, where there is one.
    /// - Returns: the value of a checked object, which has a field in one spelling at most.
    func field(_ name: String, or camelCase: String? = nil) -> JSONValue? {
        let value = self[name] ?? camelCase.flatMap { self[$0] }
        return value?.isNull == false ? value : nil
    }

    /// A text by its name; the empty one is absent, as it is protobuf's default.
    func text(_ name: String, or camelCase: String? = nil) -> String? {
        let text = self.field(name, or: camelCase)?.string
        return text?.isEmpty == false ? text : nil
    }
}
