import ArgumentParser
import Foundation
import GatewayService
import NIOSSL

/// The options for verifying a listener's certificate and presenting a client certificate.
struct TLSOptions: ParsableArguments {
    /// A file that an option or else a variable names, and the name of that option or variable.
    private struct NamedFile {
        let path: String
        let name: String

        init?(_ option: String?, _ optionName: String, _ variable: String, _ environment: [String: String]) {
            guard let path = option ?? environment[variable] else { return nil }
            (self.path, self.name) = (path, option == nil ? variable : optionName)
        }
    }

    @Option(
        name: .long,
        help: "The authorities to trust, in PEM (default: GATEWAY_CA_FILE, else the system's).",
        completion: .file()
    )
    var caFile: String?

    @Option(
        name: .long,
        help: "The client certificate, in PEM (default: GATEWAY_CLIENT_CERTIFICATE_FILE).",
        completion: .file()
    )
    var clientCertificate: String?

    @Option(
        name: .long,
        help: "The client certificate's private key, in PEM (default: GATEWAY_CLIENT_KEY_FILE).",
        completion: .file()
    )
    var clientKey: String?

    func configuration(environment: [String: String]) throws -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        if let authorities = NamedFile(self.caFile, "--ca-file", "GATEWAY_CA_FILE", environment) {
            let certificates = try PEMFile.certificates(in: authorities.path, key: authorities.name)
            tls.trustRoots = .certificates(certificates)
        }
        let certificate = NamedFile(
            self.clientCertificate,
            "--client-certificate",
            "GATEWAY_CLIENT_CERTIFICATE_FILE",
            environment
        )
        let key = NamedFile(self.clientKey, "--client-key", "GATEWAY_CLIENT_KEY_FILE", environment)
        switch (certificate, key) {
        case (nil, nil):
            break
        case (let certificate?, let key?):
            let chain = try PEMFile.certificates(in: certificate.path, key: certificate.name)
            let privateKey = try PEMFile.privateKey(in: key.path, key: key.name)
            tls.certificateChain = chain.map { .certificate($0) }
            tls.privateKey = .privateKey(privateKey)
            guard (try? NIOSSLContext(configuration: tls)) != nil else {
                throw CommandFailure("\(key.name): the key in \(key.path) does not belong to \(certificate.path)")
            }
        case (let certificate?, nil):
            throw ValidationError("\(certificate.name) needs the certificate's key: give --client-key.")
        case (nil, let key?):
            throw ValidationError("\(key.name) needs the key's certificate: give --client-certificate.")
        }
        return tls
    }
}

extension TLSConfiguration {
    /// True if an option or a variable named the authorities.
    var namesAuthorities: Bool { self.trustRoots != nil && self.trustRoots != .default }
}
