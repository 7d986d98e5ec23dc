package import Foundation
package import GatewayCore

/// A secret that prints, reflects and interpolates as `<redacted>`. Each use is easy to find by the name `revealed`.
package struct Redacted<Value: Sendable>: Sendable {
    package let revealed: Value

    package init(_ revealed: Value) {
        self.revealed = revealed
    }
}

extension Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "<redacted>" }
    package var debugDescription: String { "<redacted>" }
    /// Without children, so that `dump` shows nothing either.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The secrets that the gateway needs to start.
package struct ServingSecrets: Sendable {
    package let masterKey: Redacted<[UInt8]>
    /// The key before the current one. Set while secrets may still be sealed with it.
    package var previousMasterKey: Redacted<[UInt8]>?
    /// `nil` if operators have named tokens alone.
    package let adminToken: Redacted<String>?

    package init(
        masterKey: Redacted<[UInt8]>,
        previousMasterKey: Redacted<[UInt8]>? = nil,
        adminToken: Redacted<String>?
    ) {
        self.masterKey = masterKey
        self.previousMasterKey = previousMasterKey
        self.adminToken = adminToken
    }
}

extension MasterKey {
    /// Creates the configured master key with the previous one. Throws `invalid` for a wrong length.
    package init(_ key: Redacted<[UInt8]>, previous: Redacted<[UInt8]>?) throws(GatewayError) {
        guard
            let masterKey = MasterKey(
                Secret(bytes: key.revealed),
                previous: previous.map { Secret(bytes: $0.revealed) }
            )
        else {
            throw GatewayError(.invalid, "A master key must have \(MasterKey.byteCount) bytes")
        }
        self = masterKey
    }
}

/// A secret from a variable, or from the file that another variable names.
package enum SecretVariable {
    /// A secret, and the variable that named it.
    package struct Found: Sendable {
        package var value: Redacted<String>
        package var variable: String
    }

    /// The reason that a file holds no secret. Never holds the secret itself.
    package struct Unusable: Error {
        package let message: String
    }

    /// The maximum size of a secret file, in bytes.
    static let maxBytes = 64 * 1_024

    /// Finds a secret by its variable, or by the file that the variable with the suffix `_FILE` names. Returns `nil` if
    /// neither variable is set.
    package static func find(_ name: String, in environment: [String: String]) throws(ConfigurationProblems) -> Found? {
        let fileVariable = "\(name)_FILE"
        switch (environment[name], environment[fileVariable]) {
        case (nil, nil):
            return nil
        case (.some, .some):
            throw Self.problem(name, "is set, and so is \(fileVariable); set one of them")
        case (.some(let value), nil):
            guard !value.isEmpty else { throw Self.problem(name, "is empty") }
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
    package static func read(file path: String) throws(Unusable) -> String {
        guard !path.isEmpty else { throw Unusable(message: "names no file") }
        let data: Data
        do {
            data = try Data(contentsOfFile: path)
        } catch {
            throw Unusable(message: "\(error)")
        }
        return try Self.secret(data, from: path)
    }

    /// Returns the secret in a file's content. Messages mention the file by `name`.
    package static func secret(_ data: Data, from name: String) throws(Unusable) -> String {
        guard data.count <= Self.maxBytes, let text = String(bytes: data, encoding: .utf8) else {
            throw Unusable(message: "\(name) is not a secret: text of at most \(Self.maxBytes) bytes")
        }
        var secret = Substring(text)
        // "\r\n" is one character, so this also removes a Windows line end.
        if secret.last?.isNewline == true {
            secret.removeLast()
        }
        guard !secret.isEmpty else { throw Unusable(message: "\(name) is empty") }
        return String(secret)
    }

    private static func problem(_ variable: String, _ message: String) -> ConfigurationProblems {
        ConfigurationProblems([ConfigurationProblem(.variable(variable), message: message)])
    }
}
