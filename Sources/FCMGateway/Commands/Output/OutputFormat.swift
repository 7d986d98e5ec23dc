import ArgumentParser

/// How a verb prints its answer.
enum OutputFormat: String, CaseIterable, ExpressibleByArgument {
    /// Aligned columns, for people.
    case table
    /// The API's JSON, for programs.
    case json
}
