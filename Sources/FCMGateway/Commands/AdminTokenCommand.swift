import ArgumentParser
import GatewayCore
import GatewayService
import StrictJSON

/// `admin-token`: manages the named tokens of operators.
struct AdminTokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "admin-token",
        abstract: "Manage the named tokens of operators.",
        subcommands: [Create.self, List.self, Revoke.self]
    )

    private static let path = ["admin-tokens"]
    private static let columns = ["name", "role", "expires_at", "created_at"]

    struct Create: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "create",
            abstract: "Create a token and print it once.",
            discussion: """
                The token works like the admin token, with the rights of its role. Its name stands in the audit. \
                Standard output receives only the token, standard error its details.

                  viewer    reads tenants, keys, limits and batches
                  auditor   also reads the audit
                  operator  also changes keys, limits and batches
                  admin     also changes tenants, credentials and admin tokens

                Example:
                  fcm-gateway admin-token create alice --role operator --expires-in 90d
                """
        )

        @Argument(help: "The name of the operator, or of the program that uses the token.") var name: String
        @Option(
            name: .long,
            help: "The role: viewer, auditor, operator or admin.",
            completion: .list(OperatorRole.allCases.map(\.rawValue))
        )
        var role: OperatorRole
        @Option(name: .long, help: "The time when the token expires, such as 2026-01-31T12:00:00Z (default: never).")
        var expiresAt: Timestamp?
        @Option(name: .long, help: "The token's lifetime, such as 90d; instead of --expires-at.")
        var expiresIn: DurationArgument?
        @OptionGroup var admin: AdminOptions

        func validate() throws {
            if self.expiresAt != nil, self.expiresIn != nil {
                throw ValidationError("Give --expires-at or --expires-in, not both.")
            }
        }

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let end = self.expiresIn.map { SystemWallClock().now().advanced(by: .seconds($0.seconds)) }
            let body = JSONWriter.object { writer in
                writer.member("expires_at", ifPresent: (self.expiresAt ?? end)?.rfc3339)
                writer.member("name", self.name)
                writer.member("role", self.role.rawValue)
            }
            let answer: JSONValue?
            do {
                answer = try await client.call(.post, AdminTokenCommand.path, body: body)
            } catch {
                let advice = "The token may have been created. If fcm-gateway admin-token list shows it, revoke it and "
                throw APIError.doubting(error, advice + "create another, because its secret was never shown.")
            }
            guard let answer, let token = answer.text("token") else {
                throw CommandFailure("the gateway's answer holds no token")
            }
            var output = CommandOutput(answer.prettyText())
            if !self.wantsJSON {
                let details = TextTable(object: answer, columns: AdminTokenCommand.columns).text
                output = CommandOutput(
                    token.printable,
                    remark: "\(details)\nThis is the only time the token is shown."
                )
            }
            output.adviceIfLost =
                "The token \(self.name) was created, but could not be shown: revoke it (fcm-gateway admin-token revoke "
                + "\(self.name)) and create a new one"
            try print(output)
        }
    }

    struct List: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the named tokens, without their secrets.",
            discussion: """
                The token of the configuration (GATEWAY_ADMIN_TOKEN) has no name and is not listed.

                Example:
                  fcm-gateway admin-token list
                """
        )

        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let tokens = try await client.list(AdminTokenCommand.path, member: "admin_tokens")
            try print(
                .list(tokens, member: "admin_tokens", columns: AdminTokenCommand.columns, json: self.wantsJSON)
            )
        }
    }

    struct Revoke: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "revoke",
            abstract: "Revoke a token, on all replicas within five seconds.",
            discussion: """
                Example:
                  fcm-gateway admin-token revoke alice
                """
        )

        @Argument(help: "The token's name.") var name: String
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            _ = try await client.call(.delete, AdminTokenCommand.path + [self.name])
            let output = CommandOutput.done("admin token \(self.name) revoked", json: self.wantsJSON) { writer in
                writer.member("name", self.name)
                writer.member("revoked", true)
            }
            try print(output)
        }
    }
}
