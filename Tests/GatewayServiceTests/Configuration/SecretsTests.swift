import Foundation
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayService

struct SecretVariableTests {
    private static let key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

    private static func problem(_ environment: [String: String]) -> String? {
        do {
            _ = try ConfigurationInput(file: nil as String?, environment: environment).configuration()
            return nil
        } catch {
            return error.description
        }
    }

    @Test(
        "One newline at a file's end is not part of the secret",
        arguments: [("secret", "secret"), ("secret\n", "secret"), ("secret\r\n", "secret"), ("secret\n\n", "secret\n")]
    )
    func trailingNewline(content: String, secret: String) async throws {
        try await TemporaryDirectory.with { directory in
            let path = try directory.file("s", content)
            #expect(try SecretVariable.read(file: path) == secret)
        }
    }

    @Test("A secret may be set by variable or by file, not by both")
    func bothSet() async throws {
        try await TemporaryDirectory.with { directory in
            let path = try directory.file("key", "\(Self.key)\n")
            #expect(Self.problem(["GATEWAY_MASTER_KEY": Self.key]) == nil)
            #expect(Self.problem(["GATEWAY_MASTER_KEY_FILE": path]) == nil)
            #expect(
                Self.problem(["GATEWAY_MASTER_KEY": Self.key, "GATEWAY_MASTER_KEY_FILE": path])
                    == "GATEWAY_MASTER_KEY: is set, and so is GATEWAY_MASTER_KEY_FILE; set one of them"
            )
        }
    }

    @Test("A secret file that is missing, empty or not text is refused with its variable and path")
    func badFiles() async throws {
        try await TemporaryDirectory.with { directory in
            let empty = try directory.file("empty", "\n")
            let missing = "\(directory.path)/missing"
            let binary = "\(directory.path)/binary"
            try Data([0xFF, 0xFE]).write(to: URL(filePath: binary))
            #expect(Self.problem(["GATEWAY_ADMIN_TOKEN_FILE": empty]) == "GATEWAY_ADMIN_TOKEN_FILE: \(empty) is empty")
            #expect(
                Self.problem(["GATEWAY_ADMIN_TOKEN_FILE": missing])
                    == "GATEWAY_ADMIN_TOKEN_FILE: \(missing) cannot be read: No such file or directory"
            )
            #expect(
                Self.problem(["GATEWAY_MASTER_KEY_FILE": binary])
                    == "GATEWAY_MASTER_KEY_FILE: \(binary) is not a secret: text of at most 65536 bytes"
            )
            #expect(
                Self.problem(["GATEWAY_MASTER_KEY_FILE": directory.path])
                    == "GATEWAY_MASTER_KEY_FILE: \(directory.path) cannot be read: it is a directory"
            )
            #expect(Self.problem(["GATEWAY_MASTER_KEY_FILE": ""]) == "GATEWAY_MASTER_KEY_FILE: names no file")
        }
    }

    @Test(
        "An unusable secret is refused without quoting it",
        arguments: [
            ("GATEWAY_MASTER_KEY", "", "is empty"),
            (
                "GATEWAY_MASTER_KEY", "not base64!",
                "must be base64 of exactly 32 bytes, not other text of 11 characters; openssl rand -base64 32 prints one"
            ),
            (
                "GATEWAY_MASTER_KEY", "c2hvcnQ=",
                "must be base64 of exactly 32 bytes, not of 5; openssl rand -base64 32 prints one"
            ),
            ("GATEWAY_ADMIN_TOKEN", "thirty-one-characters-are-no-go", "must have at least 32 characters"),
            (
                "GATEWAY_ADMIN_TOKEN", "thirty-two characters with spaces",
                "must be visible ASCII characters without spaces, because it is sent in a header"
            ),
        ]
    )
    func badValues(name: String, value: String, problem: String) {
        #expect(Self.problem([name: value]) == "\(name): \(problem)")
    }

    @Test("Missing secrets are warnings of the configuration, and serving refuses them")
    func missingSecrets() throws {
        let loopback = ["GATEWAY_HTTP_HOST": "127.0.0.1"]
        let configuration = try ConfigurationInput(file: nil as String?, environment: loopback).configuration()
        #expect(
            configuration.warnings.map(\.description) == [
                "GATEWAY_MASTER_KEY: is not set, nor is GATEWAY_MASTER_KEY_FILE; serve does not start without it. fcm-gateway init makes one",
                "GATEWAY_ADMIN_TOKEN: is not set, nor is GATEWAY_ADMIN_TOKEN_FILE; serve does not start without it, unless the store has a token of the role admin. fcm-gateway init makes one",
            ]
        )
        #expect(throws: ConfigurationProblems.self) { try configuration.servingSecrets() }

        let complete = try ConfigurationInput(
            file: nil as String?,
            environment: [
                "GATEWAY_MASTER_KEY": Self.key, "GATEWAY_ADMIN_TOKEN": "thirty-two-characters-are-enough",
            ]
            .merging(loopback) { $1 }
        )
        .configuration()
        #expect(try complete.servingSecrets().masterKey.revealed.count == 32)
        #expect(try complete.servingSecrets().adminToken?.revealed == "thirty-two-characters-are-enough")
        #expect(complete.warnings.isEmpty)
    }
}

struct ServingSecretsTests {
    private static let keys = [1, 2].map { Data(repeating: UInt8(200 + $0), count: 32).base64EncodedString() }

    private static func load(_ environment: [String: String]) throws -> GatewayConfiguration {
        try ConfigurationInput(file: ConfigurationFile?.none, environment: environment).configuration()
    }

    @Test("The previous master key is configured like the master key")
    func previous() throws {
        let configuration = try Self.load([
            "GATEWAY_MASTER_KEY": Self.keys[0], "GATEWAY_PREVIOUS_MASTER_KEY": Self.keys[1],
            "GATEWAY_ADMIN_TOKEN": "admin-token-of-the-tests-0123456789",
        ])
        let secrets = try configuration.servingSecrets()
        #expect(secrets.masterKey.revealed == Array(repeating: 201, count: 32))
        #expect(secrets.previousMasterKey?.revealed == Array(repeating: 202, count: 32))
        let key = try MasterKey(secrets.masterKey, previous: secrets.previousMasterKey)
        #expect(key.hasPrevious)
        #expect(try !MasterKey(secrets.masterKey, previous: nil).hasPrevious)
    }

    @Test(
        "A previous master key that is malformed or the current one is refused by name",
        arguments: [("c2hvcnQ=", "must be base64 of exactly 32 bytes"), (Self.keys[0], "is the same key as masterKey")]
    )
    func refused(previous: String, message: String) throws {
        let error = #expect(throws: ConfigurationProblems.self) {
            try Self.load(["GATEWAY_MASTER_KEY": Self.keys[0], "GATEWAY_PREVIOUS_MASTER_KEY": previous])
        }
        let text = error?.description ?? ""
        #expect(text.contains("GATEWAY_PREVIOUS_MASTER_KEY"))
        #expect(text.contains(message))
        #expect(!text.contains(previous))
    }

    @Test("Printing or dumping the configuration or its secrets shows no secret")
    func shown() throws {
        let token = "canary-admin-token-7f3b-0123456789"
        let configuration = try Self.load([
            "GATEWAY_MASTER_KEY": Self.keys[0], "GATEWAY_PREVIOUS_MASTER_KEY": Self.keys[1],
            "GATEWAY_ADMIN_TOKEN": token,
        ])
        let secrets = try configuration.servingSecrets()
        let key = try MasterKey(secrets.masterKey, previous: secrets.previousMasterKey)
        var text = "\(configuration) \(secrets) \(key) \(String(reflecting: secrets)) \(String(reflecting: key))"
        dump(configuration, to: &text)
        dump(secrets, to: &text)
        dump(key, to: &text)
        #expect(text.contains("<redacted>"))
        for canary in Self.keys + [token, "201, 201", "202, 202", "c9c9", "caca"] {
            #expect(!text.contains(canary), "\(canary)")
        }
    }
}
