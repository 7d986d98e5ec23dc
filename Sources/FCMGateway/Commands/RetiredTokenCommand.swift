import ArgumentParser
import GatewayCore
import StrictJSON

/// `retired-token`: lets a tenant's service remove tokens from its list of dead tokens.
struct RetiredTokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retired-token",
        abstract: "Manage a tenant's list of dead tokens.",
        subcommands: [Delete.self]
    )

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "delete",
            abstract: "Remove a token from the list, so that the next send to the token reaches FCM.",
            discussion: """
                The gateway is at --url or GATEWAY_URL (default http://127.0.0.1:8080). The key, which needs the scope \
                tokens:manage, comes from --key-file, GATEWAY_KEY or GATEWAY_KEY_FILE.

                Example:
                  fcm-gateway retired-token delete shop TOKEN
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @Argument(help: "The registration token, or with --fid the installation id.") var token: String
        @Flag(help: "The token is a Firebase installation id.") var fid = false
        @OptionGroup var service: ServiceOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await self.service.call { try await self.perform($0) }
        }

        func perform(_ client: APIClient) async throws -> CommandOutput {
            _ = try await client.call(
                .delete,
                ["v1", "tenants", self.tenant.text, "retired-tokens"],
                query: [(self.fid ? "fid" : "token", self.token)]
            )
            return .done("token removed from the list", json: self.output.isJSON) { $0.member("deleted", true) }
        }
    }
}
