package import Foundation

/// A secret that comes from a variable, or from the file that another variable names.
package enum SecretVariable {
    /// What was found.
    package struct Found: Sendable {
        /// The secret.
        package var value: Redacted<String>
        /// The variable it came by.
        package var variable: String
    }

    /// The largest secret file read, in bytes.
    package static let maxBytes = 64 * 1_024

    /// Finds a secret.
    ///
    /// - Parameters:
    ///   - name: The variable's name; the one that names a file has `_FILE` after it.
    ///   - environment: The process's variables.
    /// - Returns: The secret, or nil when neither variable is set.
    /// - Throws: A problem naming the variable, and the file where there is one.
    package static func find(_ name: String, in environment: [String: String]) throws(ConfigurationProblems) -> Found? {
        let fileVariable = "\(name)_FILE"
        switch (environment[name], environment[fileVariable]) {
        case (nil, nil):
            return nil
        case (.some, .some):
            throw Self.problem(name, "is set, and so is \(fileVariable); set one of them")
        case (.some(let value), nil):
            guard !value.isEmpty else {
                throw Self.problem(name, "is empty")
            }
            return Found(value: Redacted(value), variable: name)
        case (nil, .some(let path)):
            do {
                return Found(value: Redacted(try Self.read(file: path)), variable: fileVariable)
            } catch {
                throw Self.problem(fileVariable, error.message)
            }
        }
    }

    /// Reads a secret from a file, without the one newline that editors leave at the end.
    ///
    /// - Parameter path: The file's path.
    /// - Returns: The secret.
    /// - Throws: A message naming the file.
    package static func read(file path: String) throws(SectionReader.Invalid) -> String {
        guard !path.isEmpty else {
            throw SectionReader.Invalid("names no file")
        }
        guard let data = FileManager.default.contents(atPath: path) else {
            throw SectionReader.Invalid("\(path) cannot be read")
        }
        return try Self.secret(data, from: path)
    }

    /// The secret that a file's content holds.
    ///
    /// - Parameters:
    ///   - data: The content.
    ///   - name: The file's name, for messages.
    /// - Returns: The secret.
    /// - Throws: A message naming the file.
    package static func secret(_ data: Data, from name: String) throws(SectionReader.Invalid) -> String {
        guard data.count <= Self.maxBytes, let text = String(bytes: data, encoding: .utf8) else {
            throw SectionReader.Invalid("\(name) is not a secret: text of at most \(Self.maxBytes) bytes")
        }
        var secret = Substring(text)
        // "\r\n" is one character, so this also takes a line end written elsewhere.
        if secret.last?.isNewline == true {
            secret.removeLast()
        }
        guard !secret.isEmpty else {
            throw SectionReader.Invalid("\(name) is empty")
        }
        return String(secret)
    }

    private static func problem(_ variable: String, _ message: String) -> ConfigurationProblems {
        ConfigurationProblems([ConfigurationProblem(place: .variable(variable), message: message)])
    }
}
