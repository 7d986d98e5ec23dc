import EventLoopHTTP
import Foundation
import GatewayCore
import GatewayService
import Yams

/// Reads the secrets that a file of tenants names, from the files that they are in.
struct DeclaredSecrets {
    private let directory: URL

    /// Creates a reader of secrets.
    ///
    /// - Parameter path: The file that names them; their paths are relative to it.
    init(besideFile path: String) {
        self.directory = URL(fileURLWithPath: path).deletingLastPathComponent()
    }

    /// A credential of a kind, or nil when something is wrong with it.
    func credential(
        _ kind: UpstreamKind,
        _ node: Node,
        _ path: String,
        _ reader: inout NodeReader
    ) -> DeclaredTenant.Credential? {
        let fileMember =
            switch kind {
            case .legacy: "server_key_file"
            case .v1: "service_account_file"
            }
        guard let members = reader.members(node, path, known: [fileMember, "endpoint"]) else { return nil }
        guard let file = members[fileMember] else {
            reader.report(node, "\(path).\(fileMember)", "is missing")
            return nil
        }
        var endpoint: String?
        if let node = members["endpoint"], let text = reader.text(node, "\(path).endpoint") {
            endpoint = text
            if HTTPOrigin(text) == nil {
                reader.report(node, "\(path).endpoint", "must be http(s)://host[:port] without a path")
            }
        }
        let filePath = "\(path).\(fileMember)"
        switch kind {
        case .legacy:
            guard let key = self.serverKey(file, filePath, &reader) else { return nil }
            return DeclaredTenant.Credential(
                kind: kind,
                member: ("server_key", Redacted(.string(key))),
                fingerprint: LegacyCredential(serverKey: Secret(key), endpoint: nil).fingerprint,
                endpoint: endpoint
            )
        case .v1:
            guard let (account, fingerprint) = self.account(file, filePath, &reader) else { return nil }
            return DeclaredTenant.Credential(
                kind: kind,
                member: ("service_account", Redacted(account)),
                fingerprint: fingerprint,
                endpoint: endpoint
            )
        }
    }

    /// A key that exists already, or nil when something is wrong with it.
    func key(_ node: Node, _ path: String, _ reader: inout NodeReader) -> DeclaredTenant.Imported? {
        guard let text = self.secret(node, path, &reader) else { return nil }
        guard let key = APIKey(text) else {
            reader.report(node, path, "holds no key of the form fgw_…, or a mistyped one; key generate makes one")
            return nil
        }
        return DeclaredTenant.Imported(id: key.id, text: Redacted(text))
    }

    private func serverKey(_ node: Node, _ path: String, _ reader: inout NodeReader) -> String? {
        guard let key = self.secret(node, path, &reader) else { return nil }
        guard key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            reader.report(node, path, "holds something else than one server key: blanks, or more than one line")
            return nil
        }
        return key
    }

    private func account(
        _ node: Node,
        _ path: String,
        _ reader: inout NodeReader
    ) -> (account: JSONValue, fingerprint: String)? {
        guard let text = self.secret(node, path, &reader) else { return nil }
        do {
            let fingerprint = try ServiceAccountCredential.fingerprint(ofFile: Array(text.utf8))
            return (try JSONValue(parsing: Data(text.utf8)), fingerprint)
        } catch let problem as ServiceAccountProblem {
            let member = problem.member.map { "\($0): " } ?? ""
            reader.report(node, path, "holds no service account that can be used: \(member)\(problem.message)")
        } catch {
            reader.report(node, path, "holds no JSON")
        }
        return nil
    }

    private func secret(_ node: Node, _ path: String, _ reader: inout NodeReader) -> String? {
        guard let name = reader.text(node, path) else { return nil }
        let file = URL(fileURLWithPath: name, relativeTo: self.directory).path
        // What names no file may be the secret itself, so it is not quoted.
        guard FileManager.default.fileExists(atPath: file) else {
            reader.report(node, path, "must name a file that is there; a relative name begins at this file's folder")
            return nil
        }
        do {
            return try SecretVariable.read(file: file)
        } catch {
            reader.report(node, path, error.message)
            return nil
        }
    }
}
