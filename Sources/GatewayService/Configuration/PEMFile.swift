import Foundation
package import NIOSSL

/// Reads certificates and keys. Throws a file's fault, under the key or option that names the file.
package enum PEMFile {
    package static func certificates(
        in file: String,
        key: String
    ) throws(ConfigurationProblems) -> [NIOSSLCertificate] {
        let data = try Self.contents(of: file, key)
        do {
            let certificates = try NIOSSLCertificate.fromPEMBytes(Array(data))
            if !certificates.isEmpty, Self.isWhole(data) { return certificates }
        } catch {
            // The library's text names its own functions, not the fault.
        }
        throw self.problem(key, "\(file) holds no certificate in PEM, or one that is cut off")
    }

    /// True if every block of a PEM file is complete. The library ignores a truncated block.
    private static func isWhole(_ data: Data) -> Bool {
        let lines = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline)
            .map { $0.trimmingCharacters(in: .whitespaces) }
        let ends = lines.count { $0.hasPrefix("-----END ") && $0.hasSuffix("-----") }
        return lines.count { $0.hasPrefix("-") } == 2 * ends
    }

    package static func privateKey(in file: String, key: String) throws(ConfigurationProblems) -> NIOSSLPrivateKey {
        let data = try Self.contents(of: file, key)
        do {
            return try NIOSSLPrivateKey(bytes: Array(data), format: .pem)
        } catch {
            throw self.problem(key, "\(file) holds no private key in PEM, or one that has a passphrase or is cut off")
        }
    }

    private static func contents(of file: String, _ key: String) throws(ConfigurationProblems) -> Data {
        do {
            return try Data(contentsOfFile: file)
        } catch {
            throw self.problem(key, "\(error)")
        }
    }

    static func problem(_ key: String, _ message: String) -> ConfigurationProblems {
        ConfigurationProblems([ConfigurationProblem(key: key, message: message)])
    }
}
