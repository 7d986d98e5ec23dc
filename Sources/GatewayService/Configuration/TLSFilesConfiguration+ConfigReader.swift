extension TLSFilesConfiguration {
    /// Reads the keys below `tls` of a listener's section.
    ///
    /// - `tls.certificateFile` (path, default none).
    /// - `tls.privateKeyFile` (path, default none): set with the certificate, or not at all.
    /// - `tls.clientCaFile` (path, default none): demands client certificates; needs the other two.
    ///
    /// - Parameter section: The listener's section, which keeps the problems.
    /// - Returns: The files, or nil when the listener speaks plain HTTP.
    static func read(_ section: inout SectionReader) -> TLSFilesConfiguration? {
        var certificate = ""
        var privateKey = ""
        var clientCA = ""
        section.text("tls.certificateFile", into: &certificate)
        section.text("tls.privateKeyFile", into: &privateKey)
        section.text("tls.clientCaFile", into: &clientCA)

        if certificate.isEmpty, privateKey.isEmpty {
            if !clientCA.isEmpty {
                section.report("tls.clientCaFile", "needs tls.certificateFile and tls.privateKeyFile")
            }
            return nil
        }
        guard !certificate.isEmpty, !privateKey.isEmpty else {
            let (present, absent) =
                privateKey.isEmpty
                ? ("tls.certificateFile", "tls.privateKeyFile") : ("tls.privateKeyFile", "tls.certificateFile")
            section.report(present, "needs \(absent)")
            return nil
        }
        return TLSFilesConfiguration(
            certificateFile: certificate,
            privateKeyFile: privateKey,
            clientCAFile: clientCA.isEmpty ? nil : clientCA
        )
    }
}
