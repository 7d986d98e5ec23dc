/// Reads what an option names as JSON.
enum JSONValueFile {
    /// Reads a file that must hold one JSON value.
    ///
    /// - Parameter path: The file's path, or `-` for standard input.
    /// - Returns: The value.
    /// - Throws: `CommandFailure` naming the file; never quoting it, since it may hold a secret.
    static func read(_ path: String) throws(CommandFailure) -> JSONValue {
        let data = try InputFile.read(path)
        do {
            return try JSONValue(parsing: data)
        } catch {
            throw CommandFailure("\(path == "-" ? "standard input" : path) holds no JSON")
        }
    }
}
