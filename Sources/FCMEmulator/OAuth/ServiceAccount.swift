import JWTKit

/// What the token endpoint knows of a service account.
struct ServiceAccount: Sendable {
    let email: String
    let projectID: String
    let keyID: String
    /// The audience its assertions must name.
    let tokenURI: String
    let publicKey: Insecure.RSA.PublicKey

    /// Takes the public half of a file.
    ///
    /// - Throws: ``EmulatorError/badServiceAccount(_:)`` when the key is no RSA key of 2048 bits or more.
    init(_ file: ServiceAccountFile) throws(EmulatorError) {
        do {
            self.publicKey = try Insecure.RSA.PrivateKey(pem: file.privateKey).publicKey
        } catch {
            throw .badServiceAccount("private_key is no RSA key in PEM of at least 2048 bits")
        }
        self.email = file.clientEmail
        self.projectID = file.projectID
        self.keyID = file.privateKeyID
        self.tokenURI = file.tokenURI
    }
}
