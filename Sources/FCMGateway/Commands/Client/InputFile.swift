import Foundation
import GatewayService

/// Reads what an option names: a file, or standard input for `-`.
enum InputFile {
    /// Reads everything.
    ///
    /// - Parameter path: The file's path, or `-`.
    /// - Returns: The content.
    /// - Throws: `CommandFailure` naming the file.
    static func read(_ path: String) throws(CommandFailure) -> Data {
        if path == "-" {
            do {
                return try FileHandle.standardInput.readToEnd() ?? Data()
            } catch {
                throw CommandFailure("standard input cannot be read")
            }
        }
        guard let data = FileManager.default.contents(atPath: path) else {
            throw CommandFailure("\(path) cannot be read")
        }
        return data
    }

    /// What messages call a file.
    static func name(_ path: String) -> String {
        path == "-" ? "standard input" : path
    }

    /// Reads a secret, without the newline at its end.
    ///
    /// - Parameter path: The file's path, or `-`.
    /// - Returns: The secret.
    /// - Throws: `CommandFailure` naming the file.
    static func readSecret(_ path: String) throws(CommandFailure) -> Redacted<String> {
        let data = try Self.read(path)
        do {
            return Redacted(try SecretVariable.secret(data, from: Self.name(path)))
        } catch {
            throw CommandFailure(error.message)
        }
    }
}
