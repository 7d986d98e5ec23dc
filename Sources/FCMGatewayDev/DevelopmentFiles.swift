import Crypto
import FCMEmulator
import Foundation
import GatewayCore
import GatewayService

/// The secrets of a trial gateway, each in a file that only its owner can read.
struct DevelopmentFiles: Sendable {
    private let directory: String

    /// Creates the directory if it is missing.
    init(directory: String) throws {
        self.directory = directory
        do {
            try FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw GatewayError(.storeUnavailable, "\(directory) can't be created: \(SystemError.text(error))")
        }
    }

    var path: String { self.directory }

    /// The master key and the admin token.
    func secrets() throws -> ServingSecrets {
        let masterKey = try self.text("master.key") { Secret(randomBytes: MasterKey.byteCount).base64 }
        guard let bytes = Data(base64Encoded: masterKey) else {
            throw GatewayError(.invalid, "\(self.directory)/master.key is not base64")
        }
        let adminToken = try self.text("admin.token") { Secret(randomBytes: 24).base64 }
        return ServingSecrets(masterKey: Redacted([UInt8](bytes)), adminToken: Redacted(adminToken))
    }

    func serverKey() throws -> String {
        try self.text("fcm-server.key") { "dev-" + Secret(randomBytes: 24).base64 }
    }

    /// The service account for an endpoint of the fake FCM, created on the first call; the fake FCM also issues its
    /// access tokens.
    func serviceAccount(endpoint: String) throws -> ServiceAccountFile {
        let tokenURI = endpoint + "/token"
        let text = try self.text("service-account.json") {
            try ServiceAccountFile(making: "demo", tokenURI: tokenURI).json
        }
        var file = try ServiceAccountFile(json: text)
        file.tokenURI = tokenURI
        return file
    }

    func demoKey() throws -> String? {
        let path = self.file("demo.key")
        return FileManager.default.fileExists(atPath: path) ? try Self.read(path) : nil
    }

    func keep(demoKey: String) throws {
        try self.write(demoKey, to: self.file("demo.key"))
    }

    private func text(_ name: String, orMake make: () throws -> String) throws -> String {
        let path = self.file(name)
        if FileManager.default.fileExists(atPath: path) { return try Self.read(path) }
        let text = try make()
        try self.write(text, to: path)
        return text
    }

    private func file(_ name: String) -> String { "\(self.directory)/\(name)" }

    private static func read(_ path: String) throws -> String {
        try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func write(_ text: String, to path: String) throws {
        let isWritten = FileManager.default.createFile(
            atPath: path,
            contents: Data("\(text)\n".utf8),
            attributes: [.posixPermissions: 0o600]
        )
        guard isWritten else { throw GatewayError(.storeUnavailable, "\(path) can't be written") }
    }
}

extension Secret {
    fileprivate var base64: String { Data(self.revealBytes()).base64EncodedString() }
}
