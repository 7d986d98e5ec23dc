import NIOSSL

/// A self-signed certificate for `localhost` and `127.0.0.1`, good until 2125 and for these tests only.
enum TestCertificate {
    static func server() throws -> TLSConfiguration {
        let certificate = try NIOSSLCertificate(bytes: Array(Self.certificate.utf8), format: .pem)
        let key = try NIOSSLPrivateKey(bytes: Array(Self.key.utf8), format: .pem)
        return .makeServerConfiguration(certificateChain: [.certificate(certificate)], privateKey: .privateKey(key))
    }

    static func client() throws -> TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .certificates([
            try NIOSSLCertificate(bytes: Array(Self.certificate.utf8), format: .pem)
        ])
        return configuration
    }

    /// A certificate for another key.
    static func other() throws -> NIOSSLCertificate {
        try NIOSSLCertificate(bytes: Array(Self.otherCertificate.utf8), format: .pem)
    }

    private static let otherCertificate = """
        -----BEGIN CERTIFICATE-----
        MIIBfzCCASWgAwIBAgIUKwsJArkhxBqR+kURiUKzfvD4RvEwCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTAwMTY0MloYDzIxMjYxMDI4
        MDAxNjQyWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAAQRwoAyAtVXe4QlMRM/tiGs/AHZ/eN0FuGPYRXpO9UoQcYnbz8KQ0nf
        SACzc18Y6Z4UoWkAL7Eg4tmKH8KhtbNWo1MwUTAdBgNVHQ4EFgQURc7htLKK/xC1
        TuCJmHD9o8LtJyMwHwYDVR0jBBgwFoAURc7htLKK/xC1TuCJmHD9o8LtJyMwDwYD
        VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAiS/LkA/vbri2hFL8euPw
        bs9mhJWLSQThc3a4+WWlSRkCIG8zXO64gSWPaEkdxpOPSDa/XGg8wQrypt1CQdji
        WuJ/
        -----END CERTIFICATE-----
        """

    private static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBmjCCAUGgAwIBAgIUI9VjZvDanjVM0YznLoWYq/bn/XgwCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTAwMDgyN1oYDzIxMjYxMDI4
        MDAwODI3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAAR1IMkTjKYuMMPRgzfy8KKyBdDa7afFUY+ryshuhotA/iz5UcrKr4Bw
        T1mSOm+B0JersChDNblzVEw78smTDI9Zo28wbTAdBgNVHQ4EFgQUZnTGCNfhkOMK
        7xvEsOMc0WHlN+IwHwYDVR0jBBgwFoAUZnTGCNfhkOMK7xvEsOMc0WHlN+IwGgYD
        VR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZI
        zj0EAwIDRwAwRAIgcHh8eZLzTPCLtVFatpCw3+5c/w4YGylqqdOu4yot9ecCIGPt
        FUDRRNqzbwdsAIlQtiv7rQjt5t3GYGhXpccJ0TZF
        -----END CERTIFICATE-----
        """

    private static let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgXLiaoYxVsy8q0zlA
        OvQIXNO0DiYcKJsDf9I9Y5s1cAihRANCAAR1IMkTjKYuMMPRgzfy8KKyBdDa7afF
        UY+ryshuhotA/iz5UcrKr4BwT1mSOm+B0JersChDNblzVEw78smTDI9Z
        -----END PRIVATE KEY-----
        """
}
