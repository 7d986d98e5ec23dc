import ArgumentParser

/// How a verb prints its answer.
enum OutputFormat: String, CaseIterable, ExpressibleByArgument {
    /// Aligned columns, for people.
    case table
    /// The API's JSON, for programs.
    case json

    /// Whether arguments ask for JSON, also where they are not right otherwise: failures are printed in the same form.
    static func isJSON(askedBy arguments: [String]) -> Bool {
        let own = arguments.prefix { $0 != "--" }
        return own.contains("--output=json") || zip(own, own.dropFirst()).contains { $0 == ("--output", "json") }
    }
}
