/// The PEM files that make a listener speak TLS.
package struct TLSFilesConfiguration: Sendable, Equatable {
    /// The certificate chain's path, leaf first.
    package var certificateFile: String

    /// The private key's path.
    package var privateKeyFile: String

    /// The path of the authorities whose client certificates are demanded; nil asks for none.
    package var clientCAFile: String?

    /// Names the files.
    package init(certificateFile: String, privateKeyFile: String, clientCAFile: String? = nil) {
        self.certificateFile = certificateFile
        self.privateKeyFile = privateKeyFile
        self.clientCAFile = clientCAFile
    }
}
