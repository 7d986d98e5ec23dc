import Foundation
import GatewayCore
import Testing

@testable import GatewayService

struct ServingSecretsTests {
    private static let keys = [1, 2].map { Data(repeating: UInt8(200 + $0), count: 32).base64EncodedString() }

    private static func load(_ environment: [String: String]) throws -> GatewayConfiguration {
        try ConfigurationInput(file: ConfigurationFile?.none, environment: environment).configuration()
    }

    @Test("The previous master key is configured as the master key is")
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
        "A previous master key that is none, or the same, is refused by name",
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

    @Test("Whatever prints the configuration or its secrets prints no secret")
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
