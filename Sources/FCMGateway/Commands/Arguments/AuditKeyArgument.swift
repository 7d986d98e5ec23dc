import ArgumentParser
import Foundation
import GatewayCore

/// A public key on the command line: in base64, or a file that holds it.
struct AuditKeyArgument: ExpressibleByArgument {
    /// The key.
    let key: AuditPublicKey

    /// Reads the argument; `nil` when it is neither.
    init?(argument: String) {
        if let key = AuditPublicKey(base64: argument) {
            self.key = key
            return
        }
        guard let text = try? String(contentsOfFile: argument, encoding: .utf8), let key = AuditPublicKey(base64: text)
        else { return nil }
        self.key = key
    }
}
