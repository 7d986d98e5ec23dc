import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("V1Credential")
struct V1CredentialTests {
    private func problem(_ json: [UInt8], hosts: TokenHosts = .google) -> CredentialProblem? {
        do {
            _ = try V1Credential(serviceAccount: json, endpoint: nil, allowing: hosts)
            return nil
        } catch {
            return error
        }
    }

    @Test("A service account file is parsed, and unused members are skipped")
    func file() throws {
        let members = V1Credential.sampleMembers()
        let credential = try V1Credential(
            serviceAccount: V1Credential.sampleFile(),
            endpoint: "http://stub",
            allowing: .google
        )
        let key = try #require(credential.serviceAccountKey)
        #expect(credential.projectID == "acme-push")
        #expect(key.clientEmail == "sender@acme-push.iam.gserviceaccount.com")
        #expect(key.privateKeyID == "key-of-acme")
        #expect(key.privateKey.revealText() == members["private_key"])
        #expect(key.tokenURI.text == "https://oauth2.googleapis.com/token")
        #expect(credential.endpoint == "http://stub")
        #expect(credential.fingerprint.count == 16)
        #expect(!credential.secret.revealText().contains("universe"))
    }

    @Test("Descriptions and dumps of a file or credential do not contain its private key")
    func redacted() throws {
        let key = try #require(V1Credential.sampleMembers()["private_key"])
        let file = try ServiceAccountFile(json: V1Credential.sampleFile())
        let credential = try V1Credential(
            serviceAccount: V1Credential.sampleFile(),
            endpoint: nil,
            allowing: .google
        )
        var dumped = ""
        dump(file, to: &dumped)
        dump([credential], to: &dumped)
        dumped += "\(file) \(String(reflecting: file)) \(credential) \(String(reflecting: credential))"
        #expect(dumped.contains(file.clientEmail))
        for line in key.split(whereSeparator: \.isNewline) {
            #expect(!dumped.contains(line))
        }
    }

    @Test(
        "The error names a missing required member",
        arguments: ["type", "project_id", "private_key_id", "private_key", "client_email", "token_uri"]
    )
    func missing(member: String) throws {
        var members = V1Credential.sampleMembers()
        members[member] = nil
        #expect(self.problem(try V1Credential.sampleFile(members))?.member == member)
    }

    @Test(
        "The error names a member with an invalid value and does not show the value",
        arguments: [
            ("type", "authorized_user"), ("project_id", ""), ("project_id", "a/../b"),
            ("project_id", String(repeating: "p", count: 129)), ("private_key_id", "a b"), ("private_key_id", ""),
            ("client_email", "nobody"), ("client_email", "a@b\r\nX: y"), ("token_uri", "token"),
            ("token_uri", "http://oauth2.googleapis.com/token"), ("token_uri", "https://evil.example/token"),
            ("private_key", "AAAA"),
            ("private_key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
            (
                "private_key",
                "-----BEGIN RSA PRIVATE KEY-----\n" + String(repeating: "A", count: 1_600)
                    + "\n-----END RSA PRIVATE KEY-----\n"
            ),
            (
                "private_key",
                "-----BEGIN PRIVATE KEY-----\n" + String(repeating: "A", count: 40_000)
                    + "\n-----END PRIVATE KEY-----\n"
            ),
        ]
    )
    func wrong(member: String, value: String) throws {
        var members = V1Credential.sampleMembers()
        members[member] = value
        let problem = try #require(self.problem(try V1Credential.sampleFile(members)))
        #expect(problem.member == member)
        #expect(value.isEmpty || !problem.message.contains(value))
    }

    @Test(
        "The refusal of a token endpoint gives the reason",
        arguments: [
            ("http://oauth2.googleapis.com/token", "https"), ("http://evil.example/token", "https"),
            ("https://evil.example/token", "upstream.allowedTokenHosts"),
            ("https://oauth2.googleapis.com:8443/token", "upstream.allowedTokenHosts"),
            ("http://127.0.0.1:8085/token", "upstream.allowedTokenHosts"),
        ]
    )
    func tokenEndpoint(uri: String, word: String) throws {
        var members = V1Credential.sampleMembers()
        members["token_uri"] = uri
        let problem = try #require(self.problem(try V1Credential.sampleFile(members)))
        #expect(problem.member == "token_uri")
        #expect(problem.message.contains(word))
        #expect(problem.message.contains("allowedTokenHosts") == (word != "https"))
    }

    @Test("A text that is not a service account file is refused", arguments: ["", "[]x", "{", "7", "null", "\"text\""])
    func noFile(text: String) {
        #expect(self.problem(Array(text.utf8)) != nil)
    }

    @Test("The error names a member of the wrong type")
    func wrongType() {
        let text = #"{"type": "service_account", "project_id": 7}"#
        #expect(self.problem(Array(text.utf8))?.member == "project_id")
    }

    @Test("A sealed credential opens unchanged, but not under another master key or as another kind")
    func sealing() throws {
        let credential = try V1Credential.sample(endpoint: "https://fcm.example")
        let stored = try StoredCredential(
            sealing: credential,
            tenant: .sample(),
            salt: [1],
            version: 4,
            under: .sample(),
            at: .sample
        )
        #expect((stored.kind, stored.version, stored.endpoint) == (.v1, 4, "https://fcm.example"))
        #expect(stored.fingerprint == credential.fingerprint)
        let opened = try #require(V1Credential(opening: stored, salt: [1], under: .sample()))
        #expect(opened.secret.revealText() == credential.secret.revealText())
        #expect(opened.fingerprint == credential.fingerprint)
        #expect(opened.endpoint == credential.endpoint)
        #expect(V1Credential(opening: stored, salt: [1], under: try .sample("other")) == nil)
        var moved = stored
        moved.kind = .legacy
        #expect(V1Credential(opening: moved, salt: [1], under: try .sample()) == nil)
    }

    @Test("Another client email changes the fingerprint")
    func fingerprints() throws {
        var members = V1Credential.sampleMembers()
        let first = try V1Credential.sample()
        members["client_email"] = "other@acme-push.iam.gserviceaccount.com"
        let second = try V1Credential(
            serviceAccount: V1Credential.sampleFile(members),
            endpoint: nil,
            allowing: .google
        )
        #expect(first.fingerprint != second.fingerprint)
        #expect(try V1Credential.sample().fingerprint == first.fingerprint)
    }
}
