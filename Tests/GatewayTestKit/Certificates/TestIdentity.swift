/// A certificate and its key, both in PEM.
package struct TestIdentity: Sendable, Hashable {
    /// The certificate.
    package let certificate: String
    /// The certificate's key.
    package let privateKey: String

    /// A certificate and a key, which need not belong together.
    package init(certificate: String, privateKey: String) {
        self.certificate = certificate
        self.privateKey = privateKey
    }
}
