import ArgumentParser
import GatewayService

/// Finds the token a verb presents: in the file an option names, else in the environment.
enum BearerToken {
    /// Finds a token.
    ///
    /// - Parameters:
    ///   - file: The path an option gave, or nil.
    ///   - option: The option's name, for messages.
    ///   - variable: The variable; with `_FILE` after it, the one that names a file.
    ///   - environment: The process's variables.
    /// - Returns: The token.
    /// - Throws: `ValidationError` when there is none, `CommandFailure` when it cannot be read.
    static func find(
        file: String?,
        option: String,
        variable: String,
        environment: [String: String]
    ) throws -> Redacted<String> {
        let token: Redacted<String>
        if let file {
            token = try InputFile.readSecret(file)
        } else {
            do {
                guard let found = try SecretVariable.find(variable, in: environment) else {
                    throw ValidationError("No token: give \(option), or set \(variable) or \(variable)_FILE.")
                }
                token = found.value
            } catch let problems as ConfigurationProblems {
                throw CommandFailure(problems.description)
            }
        }
        // A newline or a blank in a header's value would end it early or never be valid.
        guard token.revealed.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw CommandFailure("the token may hold visible ASCII characters only")
        }
        return token
    }
}
