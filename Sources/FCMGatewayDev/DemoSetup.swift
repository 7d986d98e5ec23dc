import FCMEmulator
import Foundation
import GatewayCore
import GatewayService
import ServiceLifecycle

/// Creates the demo tenant once everything runs, and prints how to send a first message.
struct DemoSetup: Service {
    /// Any number works; the fake FCM only requires one for device groups.
    private static let senderID = "123456789012"
    private static let origin = RequestOrigin(method: "", requestID: "dev")

    let gateway: Gateway
    let emulator: FCMEmulator
    let files: DevelopmentFiles
    let format: OutputFormat

    func run() async throws {
        let emulatorPort = try await self.emulator.boundPort()
        let endpoint = "http://127.0.0.1:\(emulatorPort)"
        let account = try self.files.serviceAccount(endpoint: endpoint)
        try self.emulator.addServiceAccount(account)
        let key = try await self.setUp(endpoint: endpoint, account)
        self.gateway.readiness.release()
        let port = try await self.gateway.dataListener.boundPort()
        let adminPort = try await self.gateway.adminListener.boundPort()
        let text: String
        switch self.format {
        case .table:
            text = self.banner(key: key, port: port, adminPort: adminPort, emulatorPort: emulatorPort)
        case .json:
            let members = [
                "url": "http://127.0.0.1:\(port)", "admin_url": "http://127.0.0.1:\(adminPort)",
                "emulator_url": endpoint, "data_dir": self.files.path, "tenant": "demo", "key": key,
                "admin_token_file": "\(self.files.path)/admin.token",
            ]
            text = try OutputFormat.json(members)
        }
        do throws(StandardStream.Failure) {
            try StandardStream.output.write("\(text)\n")
        } catch {
            // A reader that closed the pipe, as `| head` does, is not a failure.
            guard error.isClosedPipe else { throw error }
        }
        try? await gracefulShutdown()
    }

    private func setUp(endpoint: String, _ account: ServiceAccountFile) async throws -> String {
        let administration = self.gateway.administration
        guard let demo = TenantID("demo") else { throw GatewayError(.invalid, "demo is not a tenant's name") }
        if (try? administration.profile(of: demo)) == nil {
            let draft = Tenant.Draft(displayName: "Demo", upstream: .legacy, senderID: Self.senderID)
            _ = try await administration.put(draft, id: demo, origin: Self.origin)
        }
        let credential = LegacyCredential(serverKey: Secret(try self.files.serverKey()), endpoint: endpoint)
        if try administration.profile(of: demo).legacyCredential?.endpoint != endpoint {
            _ = try await administration.put(credential, tenant: demo, origin: Self.origin)
        }
        if try administration.profile(of: demo).v1Credential?.endpoint != endpoint {
            _ = try await administration.put(
                V1Credential(
                    serviceAccount: Array(account.json.utf8),
                    endpoint: endpoint,
                    allowing: TokenHosts([], admitsLoopback: true)
                ),
                tenant: demo,
                origin: Self.origin
            )
        }
        if let key = try self.files.demoKey() { return key }
        let draft = APIKey.Draft(name: "demo", scopes: Set(Scope.allCases))
        let (key, _) = try await administration.createKey(draft, tenant: demo, origin: Self.origin)
        let text = key.secret.revealText()
        try self.files.keep(demoKey: text)
        return text
    }

    /// The path of `fcm-gateway` beside this program.
    private static var gatewayProgram: String {
        let program = ProcessInfo.processInfo.arguments.first ?? ""
        return program[..<(program.lastIndex(of: "/").map { program.index(after: $0) } ?? program.startIndex)]
            + "fcm-gateway"
    }

    private func banner(key: String, port: Int, adminPort: Int, emulatorPort: Int) -> String {
        """
        The gateway listens on http://127.0.0.1:\(port), for operators on http://127.0.0.1:\(adminPort),
        with a fake FCM behind it on http://127.0.0.1:\(emulatorPort). Everything is kept in \(self.files.path).

        Send a first message:

          curl -sS http://127.0.0.1:\(port)/v1/tenants/demo/messages \\
            -H 'Authorization: Bearer \(key)' \\
            -H 'Content-Type: application/json' \\
            -d '{"token": "demo-device", "notification": {"title": "Hello", "body": "from fcm-gateway"}}'

        See what reached FCM:

          curl -sS 'http://127.0.0.1:\(emulatorPort)/_emulator/journal?limit=1'

        Send by HTTP v1 instead:

          \(Self.gatewayProgram) tenant set demo --upstream v1 \\
            --admin-url http://127.0.0.1:\(adminPort) --admin-token-file \(self.files.path)/admin.token

        Open the console with the token in \(self.files.path)/admin.token:

          http://127.0.0.1:\(adminPort)/console

        Stop with Ctrl-C.
        """
    }
}
