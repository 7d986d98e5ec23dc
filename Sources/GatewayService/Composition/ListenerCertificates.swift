import Foundation
package import GatewayCore
import NIOSSL

/// A listener's certificate with its key and its clients' authorities, read and checked against each other.
package struct ListenerCertificate: Sendable {
    let configuration: TLSConfiguration
    private let leaf: NIOSSLCertificate
    private let file: String
    private let key: String

    /// Reads the files of a listener. Returns `nil` if the listener speaks plain HTTP.
    ///
    /// If authorities are configured, only clients with a certificate from one of them may connect. Throws the faults
    /// of the files, each under the configuration key that names the file.
    init?(_ files: GatewayConfiguration.TLSFiles, section: String) throws(ConfigurationProblems) {
        guard let certificateFile = files.certificateFile, let privateKeyFile = files.privateKeyFile else { return nil }
        let key = "\(section).tls.certificateFile"
        let chain = try PEMFile.certificates(in: certificateFile, key: key)
        guard let leaf = chain.first else { throw PEMFile.problem(key, "\(certificateFile) holds no certificate") }
        let privateKey = try PEMFile.privateKey(in: privateKeyFile, key: "\(section).tls.privateKeyFile")
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) },
            privateKey: .privateKey(privateKey)
        )
        if let clientCAFile = files.clientCAFile {
            let authorities = try PEMFile.certificates(in: clientCAFile, key: "\(section).tls.clientCaFile")
            configuration.trustRoots = .certificates(authorities)
            configuration.certificateVerification = .noHostnameVerification
        }
        do {
            _ = try NIOSSLContext(configuration: configuration)
        } catch {
            throw PEMFile.problem(
                "\(section).tls.privateKeyFile",
                "the key in \(privateKeyFile) does not belong to the certificate in \(certificateFile)"
            )
        }
        self.configuration = configuration
        self.leaf = leaf
        self.file = certificateFile
        self.key = key
    }

    /// Returns the reason that clients will reject the certificate at a time. Returns `nil` if the certificate is valid
    /// then.
    package func untimeliness(at now: Timestamp) -> ConfigurationProblem? {
        let text: String
        if now.seconds > self.leaf.notValidAfter {
            text = "expired"
        } else if now.seconds < self.leaf.notValidBefore {
            text = "is not valid yet"
        } else {
            return nil
        }
        let message = "the certificate in \(self.file) \(text)"
        return ConfigurationProblem(key: self.key, message: message)
    }

    /// The end of the certificate's validity, in seconds since 1970.
    package var notValidAfter: Int { Int(self.leaf.notValidAfter) }

    /// True if both certificates are the same, regardless of key file and chain.
    func isSame(as other: ListenerCertificate) -> Bool {
        self.leaf == other.leaf
    }
}

/// The certificates of both listeners. `nil` for a listener that speaks plain HTTP.
package struct ListenerCertificates: Sendable {
    package var data: ListenerCertificate?
    package var admin: ListenerCertificate?

    package init() {}

    /// Reads the files that a configuration names. Throws the first fault of each listener.
    package init(_ configuration: GatewayConfiguration) throws(ConfigurationProblems) {
        var problems: [ConfigurationProblem] = []
        func read(_ files: GatewayConfiguration.TLSFiles, _ section: String) -> ListenerCertificate? {
            do {
                return try ListenerCertificate(files, section: section)
            } catch {
                problems += error.problems
                return nil
            }
        }
        self.data = read(configuration.http.tls, "http")
        self.admin = read(configuration.admin.tls, "admin")
        if !problems.isEmpty { throw ConfigurationProblems(problems) }
    }
}
