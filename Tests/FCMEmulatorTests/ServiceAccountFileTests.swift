import Foundation
import Testing

@testable import FCMEmulator

@Suite("ServiceAccountFile")
struct ServiceAccountFileTests {
    @Test("A made account has the members of a real file, and is read back")
    func made() throws {
        let file = try TestAccount.file()
        #expect(file.privateKey.hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
        #expect(file.privateKeyID.wholeMatch(of: /[0-9a-f]{40}/) != nil)
        let members = try JSONSerialization.jsonObject(with: Data(file.json.utf8)) as? [String: String]
        #expect(
            Set(try #require(members).keys) == [
                "type", "project_id", "private_key_id", "private_key", "client_email", "token_uri",
            ]
        )
        #expect(try ServiceAccountFile(json: file.json) == file)
        _ = try ServiceAccount(file)
    }

    @Test(
        "A text that is no such file is refused with the reason",
        arguments: [
            ("[]", "the body is no JSON object: the root is not an object"),
            (#"{"type":"authorized_user"}"#, "type must be service_account"),
            (#"{"type":"service_account","project_id":""}"#, "project_id is missing"),
            (#"{"type":"service_account","project_id":1}"#, "project_id must be a string"),
        ]
    )
    func refused(text: String, reason: String) {
        #expect(throws: EmulatorError.badServiceAccount(reason)) { try ServiceAccountFile(json: text) }
    }

    @Test("A key that cannot be used is refused")
    func badKey() throws {
        var file = try TestAccount.file()
        file.privateKey = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
        #expect(throws: EmulatorError.self) { try ServiceAccount(file) }
    }
}
