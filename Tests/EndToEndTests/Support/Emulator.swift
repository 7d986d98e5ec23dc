import Foundation
import GatewayTestKit
import ProcessTestKit

extension JSON {
    /// The values of a header field in a journal entry.
    func headers(_ name: String) -> [String] {
        (self["headers"]?.elements ?? [])
            .filter { $0["name"]?.text?.lowercased() == name }
            .compactMap { $0["value"]?.text }
    }
}

/// The control interface of a fake FCM in another process.
struct Emulator: Sendable {
    let address: String

    /// Host and port.
    var host: String { String(self.address.split(separator: "/").last ?? "") }

    var port: String { String(self.address.split(separator: ":").last ?? "") }

    /// The requests it received, newest first.
    func journal(limit: Int = 1_000) async throws -> [JSON] {
        let reply = try await Reply.to("GET", "\(self.address)/_emulator/journal?limit=\(limit)")
        return reply.json["entries"]?.elements ?? []
    }

    func waitForCalls(_ count: Int) async throws {
        try await wait { try await self.journal().count >= count }
    }

    /// Scripts faults: the body of `POST /_emulator/faults`.
    func add(_ fault: String) async throws {
        let reply = try await Reply.to("POST", "\(self.address)/_emulator/faults", body: fault)
        guard reply.status == 204 else { throw Refused(reply: reply.text) }
    }

    func deleteFaults() async throws {
        _ = try await Reply.to("DELETE", "\(self.address)/_emulator/faults")
    }

    /// The emulator refused a control request.
    struct Refused: Error {
        let reply: String
    }

    /// Makes a service account and returns its file's content.
    func makeServiceAccount(project: String) async throws -> JSON {
        let body = #"{"project_id": "\#(project)"}"#
        let reply = try await Reply.to("POST", "\(self.address)/_emulator/service-accounts", body: body)
        guard (200...299).contains(reply.status) else { throw Refused(reply: reply.text) }
        return reply.json
    }

    func forget(_ account: JSON) async throws {
        let email = account["client_email"]?.text ?? ""
        let query = "client_email=\(email.replacing("@", with: "%40"))"
        _ = try await Reply.to("DELETE", "\(self.address)/_emulator/service-accounts?\(query)")
    }

    func revokeAccessTokens() async throws {
        _ = try await Reply.to("DELETE", "\(self.address)/_emulator/access-tokens")
    }

    /// Runs a body with a fake FCM in its own process, over TLS if given a directory for its certificate.
    static func with<Result>(
        tlsDirectory: String? = nil,
        _ body: (Emulator) async throws -> Result
    ) async throws -> Result {
        let arguments = ["emulator", "--port", "0"] + (tlsDirectory.map { ["--tls-dir", $0] } ?? [])
        return try await ChildProcess.with(Program.development(), arguments) { child in
            let port = try await child.errors.first { text in
                text.firstMatch(of: #/started and listening on 127\.0\.0\.1:(\d+)/#).map { String($0.1) }
            }
            return try await body(Emulator(address: "\(tlsDirectory == nil ? "http" : "https")://127.0.0.1:\(port)"))
        }
    }
}
