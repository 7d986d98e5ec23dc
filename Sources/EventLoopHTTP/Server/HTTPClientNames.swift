import NIOSSL

/// The names by which a certificate vouches for a client.
enum HTTPClientNames {
    /// The DNS names, in lower case, and the URIs among the subject alternative names (RFC 5280, section 4.2.1.6).
    ///
    /// A name that has the form of the other kind, or bytes that neither has, is left out: nobody may pass for a URI by a
    /// DNS name. The subject's common name says nothing.
    static func names(in certificate: NIOSSLCertificate) -> [String] {
        certificate._subjectAlternativeNames()
            .compactMap { name in
                let text = String(decoding: name.contents, as: UTF8.self)
                guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
                let hasScheme = text.utf8.contains(UInt8(ascii: ":"))
                switch name.nameType {
                case .dnsName where !hasScheme: return text.lowercased()
                case .uri where hasScheme: return text
                default: return nil
                }
            }
    }
}
