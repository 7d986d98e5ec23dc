import CryptoExtras
import Foundation

/// The content of a service-account file, as the v1 protocol's senders are given it.
package struct ServiceAccountFile: Sendable, Equatable {
    /// Project of the account.
    package var projectID: String

    /// Names the key among the account's keys.
    package var privateKeyID: String

    /// RSA key as PKCS#8 in PEM.
    package var privateKey: String

    /// Address of the account, which identifies it.
    package var clientEmail: String

    /// Where access tokens are asked for; the audience of assertions.
    package var tokenURI: String

    /// Makes an account with a fresh RSA key of 2048 bits, which takes some tenths of a second.
    ///
    /// - Parameters:
    ///   - projectID: project of the account.
    ///   - clientEmail: address of the account; made from the project if nil.
    ///   - tokenURI: where access tokens are asked for.
    /// - Throws: what kept the key from being made.
    package init(making projectID: String, clientEmail: String? = nil, tokenURI: String) throws {
        let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        let keyID = (0..<5).map { _ in UInt32.random(in: .min ... .max) }
        self.projectID = projectID
        self.privateKeyID = keyID.map { String($0 | 1 << 31, radix: 16) }.joined()
        self.privateKey = key.pkcs8PEMRepresentation
        self.clientEmail = clientEmail ?? "fcm-sender@\(projectID).iam.gserviceaccount.com"
        self.tokenURI = tokenURI
    }

    /// Reads a file's text; members it does not know are skipped.
    ///
    /// - Parameter json: the text.
    /// - Throws: ``EmulatorError/badServiceAccount(_:)`` naming the member that is missing or wrong.
    package init(json: String) throws(EmulatorError) {
        do {
            try self.init(members: ControlMembers(body: Array(json.utf8)))
        } catch {
            throw .badServiceAccount(error.message)
        }
    }

    /// Reads the object of a file.
    init(members: ControlMembers) throws(ControlError) {
        guard try members.string("type") == "service_account" else {
            throw .badRequest("type must be service_account")
        }
        self.projectID = try Self.text("project_id", of: members)
        self.privateKeyID = try Self.text("private_key_id", of: members)
        self.privateKey = try Self.text("private_key", of: members)
        self.clientEmail = try Self.text("client_email", of: members)
        self.tokenURI = try Self.text("token_uri", of: members)
    }

    private static func text(_ name: String, of members: ControlMembers) throws(ControlError) -> String {
        guard let text = try members.string(name), !text.isEmpty else { throw .badRequest("\(name) is missing") }
        return text
    }

    /// The file's text.
    package var json: String {
        let members = [
            ("type", "service_account"), ("project_id", self.projectID), ("private_key_id", self.privateKeyID),
            ("private_key", self.privateKey), ("client_email", self.clientEmail), ("token_uri", self.tokenURI),
        ]
        let lines = members.map { "  \(JSONValue.quoted($0)): \(JSONValue.quoted($1))" }
        return "{\n" + lines.joined(separator: ",\n") + "\n}\n"
    }
}
