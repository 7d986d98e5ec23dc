/// The PEM files that make a listener speak TLS.
struct TLSFilesConfiguration: Sendable, Equatable {
    /// The certificate chain's path, leaf first.
    var certificateFile: String

    /// The private key's path.
    var privateKeyFile: String

    /// The path of the authorities whose client certificates are demanded; nil asks for none.
    var clientCAFile: String?

    /// Names the files.
    init(certificateFile: String, privateKeyFile: String, clientCAFile: String? = nil) {
        self.certificateFile = certificateFile
        self.privateKeyFile = privateKeyFile
        self.clientCAFile = clientCAFile
    }
}
