import ArgumentParser

/// `retired-token`: what FCM said of a tenant's tokens, as the tenant's service may take it back.
struct RetiredTokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retired-token",
        abstract: "Manage a tenant's list of dead tokens.",
        subcommands: [Delete.self]
    )

    /// `retired-token delete`: takes a token off the list.
    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "delete",
            abstract: "Take a token off the list, so that the next send to it asks FCM.",
            discussion: """
                The gateway is at --url or GATEWAY_URL (default http://127.0.0.1:8080). The key, which needs the scope \
                tokens:manage, comes from --key-file or GATEWAY_KEY.
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantArgument
        @Argument(help: "The registration token, or with --fid the installation id.") var token: String
        @Flag(help: "The token is a Firebase installation id.") var fid = false
        @OptionGroup var service: ServiceOptions
        @OptionGroup var output: OutputOptions

        mutating func run() async throws {
            let command = self
            try await command.service.withClient { try await command.perform($0) }.write()
        }

        /// Takes the token off the list.
        ///
        /// - Parameter client: Calls the data listener.
        /// - Returns: That it is done.
        /// - Throws: `APIError`, also where the list does not have the token, or `CommandFailure`.
        func perform(_ client: APIClient) async throws -> CommandOutput {
            let answer = try await client.call(
                .delete,
                ["v1", "tenants", self.tenant.name, "retired-tokens"],
                query: [(self.fid ? "fid" : "token", self.token)]
            )
            return try .done(
                "token taken off the list",
                answer,
                members: ["deleted": .bool(true)],
                json: self.output.output == .json
            )
        }
    }
}
