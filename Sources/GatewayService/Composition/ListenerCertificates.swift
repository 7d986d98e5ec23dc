import Foundation
package import GatewayCore
import NIOSSL

/// A listener's certificate with its key and the authorities of its clients: read, and found to fit together.
package struct ListenerCertificate: Sendable {
    let configuration: TLSConfiguration
    private let leaf: NIOSSLCertificate
    private let file: String
    private let key: String

    /// Reads the files of a listener, nil where it speaks plain HTTP; with authorities, only clients with a certificate
    /// of theirs are let in. Throws what is wrong with one of them, by its key in the listener's section.
    init?(_ files: GatewayConfiguration.TLSFiles, section: String) throws(ConfigurationProblems) {
        guard let certificateFile = files.certificateFile, let privateKeyFile = files.privateKeyFile else { return nil }
        let key = "\(section).tls.certificateFile"
        let chain = try Self.certificates(in: certificateFile, key: key)
        guard let leaf = chain.first else { throw Self.problem(key, "\(certificateFile) holds no certificate") }
        let privateKey = try Self.privateKey(in: privateKeyFile, key: "\(section).tls.privateKeyFile")
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) },
            privateKey: .privateKey(privateKey)
        )
        if let clientCAFile = files.clientCAFile {
            let authorities = try Self.certificates(in: clientCAFile, key: "\(section).tls.clientCaFile")
            configuration.trustRoots = .certificates(authorities)
            configuration.certificateVerification = .noHostnameVerification
        }
        do {
            _ = try NIOSSLContext(configuration: configuration)
        } catch {
            throw Self.problem(
                "\(section).tls.privateKeyFile",
                "the key in \(privateKeyFile) is not that of the certificate in \(certificateFile)"
            )
        }
        self.configuration = configuration
        self.leaf = leaf
        self.file = certificateFile
        self.key = key
    }

    /// Why clients will not accept the certificate at a moment; `nil` where its time has come and is not over.
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

    /// In seconds since 1970.
    package var notValidAfter: Int { Int(self.leaf.notValidAfter) }

    /// Whether it is the same certificate as another, whatever its key's file and its chain say.
    func isSame(as other: ListenerCertificate) -> Bool {
        self.leaf == other.leaf
    }

    private static func certificates(in file: String, key: String) throws(ConfigurationProblems) -> [NIOSSLCertificate]
    {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw self.problem(key, "\(file) cannot be read")
        }
        do {
            let certificates = try NIOSSLCertificate.fromPEMBytes(Array(data))
            if !certificates.isEmpty, Self.isWhole(data) { return certificates }
        } catch {
            // What the library says of it names its own functions, not the fault.
        }
        throw self.problem(key, "\(file) holds no certificate in PEM, or one that is cut off")
    }

    /// Whether every block of a PEM file has its end: the library takes one that is cut off for text without meaning.
    private static func isWhole(_ data: Data) -> Bool {
        let lines = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline)
            .map { $0.trimmingCharacters(in: .whitespaces) }
        let ends = lines.count { $0.hasPrefix("-----END ") && $0.hasSuffix("-----") }
        return lines.count { $0.hasPrefix("-") } == 2 * ends
    }

    private static func privateKey(in file: String, key: String) throws(ConfigurationProblems) -> NIOSSLPrivateKey {
        guard FileManager.default.isReadableFile(atPath: file) else {
            throw self.problem(key, "\(file) cannot be read")
        }
        do {
            return try NIOSSLPrivateKey(file: file, format: .pem)
        } catch {
            throw self.problem(key, "\(file) holds no private key in PEM without a passphrase, or one that is cut off")
        }
    }

    private static func problem(_ key: String, _ message: String) -> ConfigurationProblems {
        ConfigurationProblems([ConfigurationProblem(key: key, message: message)])
    }
}

/// What both listeners prove themselves with; `nil` for one that speaks plain HTTP.
package struct ListenerCertificates: Sendable {
    package var data: ListenerCertificate?
    package var admin: ListenerCertificate?

    package init() {}

    /// Reads the files that a configuration names; throws what is wrong with them, of each listener the first fault.
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
