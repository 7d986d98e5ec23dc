import ArgumentParser

/// The option that every verb with an answer takes.
struct OutputOptions: ParsableArguments {
    /// How the answer is printed.
    @Option(name: .long, help: "How to print the answer.")
    var output: OutputFormat = .table
}
