import CryptoExtras
import Foundation
import JWTKit

/// The content of a service-account file, as senders by v1 get it.
package struct ServiceAccountFile: Sendable, Equatable {
    package var projectID: String
    package var privateKeyID: String
    /// RSA key as PKCS#8 in PEM.
    package var privateKey: String
    package var clientEmail: String
    /// The endpoint that issues access tokens; the audience of assertions.
    package var tokenURI: String

    package init(making projectID: String, clientEmail: String? = nil, tokenURI: String) throws {
        let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        let keyID = (0..<5).map { _ in UInt32.random(in: .min ... .max) }
        self.projectID = projectID
        self.privateKeyID = keyID.map { String($0 | 1 << 31, radix: 16) }.joined()
        self.privateKey = key.pkcs8PEMRepresentation
        self.clientEmail = clientEmail ?? "fcm-sender@\(projectID).iam.gserviceaccount.com"
        self.tokenURI = tokenURI
    }

    package init(json: String) throws(EmulatorError) {
        do {
            try self.init(members: ControlMembers(body: Array(json.utf8)))
        } catch {
            throw .badServiceAccount(error.message)
        }
    }

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

    package var json: String {
        let members = [
            ("type", "service_account"), ("project_id", self.projectID), ("private_key_id", self.privateKeyID),
            ("private_key", self.privateKey), ("client_email", self.clientEmail), ("token_uri", self.tokenURI),
        ]
        let lines = members.map { "  \(JSONValue.quoted($0)): \(JSONValue.quoted($1))" }
        return "{\n" + lines.joined(separator: ",\n") + "\n}\n"
    }
}

/// The token endpoint's data of a service account.
struct ServiceAccount: Sendable {
    let email: String
    let projectID: String
    let keyID: String
    let tokenURI: String
    let publicKey: JWTKit.Insecure.RSA.PublicKey

    init(_ file: ServiceAccountFile) throws(EmulatorError) {
        do {
            self.publicKey = try JWTKit.Insecure.RSA.PrivateKey(pem: file.privateKey).publicKey
        } catch {
            throw .badServiceAccount("private_key is not an RSA key in PEM of at least 2048 bits")
        }
        self.email = file.clientEmail
        self.projectID = file.projectID
        self.keyID = file.privateKeyID
        self.tokenURI = file.tokenURI
    }
}
