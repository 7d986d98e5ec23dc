import ArgumentParser
import Foundation

/// `credential`: manages what a tenant's messages are sent with.
struct CredentialCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credential",
        abstract: "Manage a tenant's FCM credentials.",
        subcommands: [Put.self, Get.self]
    )

    /// The kinds of credentials.
    enum Kind: String, CaseIterable, ExpressibleByArgument {
        /// A server key of the legacy HTTP protocol.
        case legacy
    }

    /// The members of a credential, in the order they are printed.
    static let columns = ["kind", "fingerprint", "endpoint", "version", "created_at"]

    /// `credential put`.
    struct Put: AdminVerb {
        static let configuration = CommandConfiguration(
            abstract: "Store a tenant's credential; it can be replaced, never read back.",
            discussion: "The server key is read from a file or standard input, never from an argument."
        )

        @Argument(help: "The tenant.") var tenant: TenantArgument
        @Argument(help: "The credential's kind.") var kind: Kind
        @Option(name: .long, help: "The file that holds the server key, or - for standard input.")
        var serverKeyFile: String
        @Option(name: .long, help: "Another server's address, such as an emulator's (default: FCM's).")
        var endpoint: BaseURL?
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) -> Void) async throws {
            let serverKey = try InputFile.readSecret(self.serverKeyFile)
            var members: [String: JSONValue] = ["server_key": .string(serverKey.revealed)]
            members["endpoint"] = self.endpoint.map { .string($0.text) }
            let answer = try await client.call(
                .put,
                ["tenants", self.tenant.name, "credentials", self.kind.rawValue],
                body: try JSONValue.object(members).encoded()
            )
            let remark = "credential stored"
            guard answer != .null, !self.wantsJSON else {
                print(try .done(remark, answer, json: self.wantsJSON))
                return
            }
            print(CommandOutput(TextTable(object: answer, columns: CredentialCommand.columns).text, remark: remark))
        }
    }

    /// `credential get`.
    struct Get: AdminVerb {
        static let configuration = CommandConfiguration(
            abstract: "Show a credential's fingerprint and dates, never the credential."
        )

        @Argument(help: "The tenant.") var tenant: TenantArgument
        @Argument(help: "The credential's kind.") var kind: Kind = .legacy
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) -> Void) async throws {
            let path = ["tenants", self.tenant.name, "credentials", self.kind.rawValue]
            let answer = try await client.call(.get, path)
            print(try .object(answer, columns: CredentialCommand.columns, json: self.wantsJSON))
        }
    }
}
