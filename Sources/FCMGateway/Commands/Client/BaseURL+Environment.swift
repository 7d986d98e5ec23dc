import ArgumentParser

extension BaseURL {
    /// The address in a variable, or the default when it is not set.
    ///
    /// - Throws: `ValidationError` when the variable holds no address.
    static func fromVariable(
        _ name: String,
        default text: String,
        environment: [String: String]
    ) throws -> BaseURL {
        guard let url = BaseURL(environment[name] ?? text) else {
            throw ValidationError("\(name) is not an address such as \(text).")
        }
        return url
    }
}
