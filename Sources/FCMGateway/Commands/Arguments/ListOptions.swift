import ArgumentParser

/// The option of every verb that prints a list.
struct ListOptions: ParsableArguments {
    /// The most elements wanted; nil reads to the end.
    @Option(name: .long, help: "The most to print (default: all).")
    var limit: Int?

    /// Refuses a limit below one.
    func validate() throws {
        if let limit = self.limit, limit < 1 {
            throw ValidationError("--limit must be at least 1.")
        }
    }
}
