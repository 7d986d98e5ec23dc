import FCMEmulator
import Foundation
import GatewayCore

extension EmulatorCertificate {
    /// The certificate that a directory keeps; it is made when neither of its files is there.
    ///
    /// - Throws: what kept a file from being read or written.
    init(keptIn directory: String) throws {
        let files = FileManager.default
        let (certificate, key) = ("\(directory)/certificate.pem", "\(directory)/private-key.pem")
        if !files.fileExists(atPath: certificate), !files.fileExists(atPath: key) {
            try files.createDirectory(atPath: directory, withIntermediateDirectories: true)
            self = try .selfSigned()
            let keyIsWritten = files.createFile(
                atPath: key,
                contents: Data(self.privateKey.utf8),
                attributes: [.posixPermissions: 0o600]
            )
            guard keyIsWritten,
                files.createFile(atPath: certificate, contents: Data(self.certificateChain.utf8))
            else { throw GatewayError(.storeUnavailable, "\(directory) can't be written") }
            return
        }
        self.init(
            certificateChain: try String(contentsOfFile: certificate, encoding: .utf8),
            privateKey: try String(contentsOfFile: key, encoding: .utf8)
        )
    }
}
