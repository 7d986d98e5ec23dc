import ArgumentParser

/// `fcm-gateway`: the server, and the verbs that manage one.
@main
struct FCMGatewayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fcm-gateway",
        abstract: "A push gateway in front of Firebase Cloud Messaging.",
        discussion: """
            Verbs that manage a running gateway speak its admin API at --admin-url or GATEWAY_ADMIN_URL, with the token \
            from --admin-token-file, GATEWAY_ADMIN_TOKEN or GATEWAY_ADMIN_TOKEN_FILE.

            Exit codes: 0 done, 1 refused or failed, 2 where a verb's own help says so, 64 wrong usage.
            """,
        version: GatewayVersion.current,
        subcommands: [
            ServeCommand.self,
            DevCommand.self,
            EmulatorCommand.self,
            TenantCommand.self,
            CredentialCommand.self,
            KeyCommand.self,
            LimitCommand.self,
            SendCommand.self,
            ExplainCommand.self,
            AuditCommand.self,
            ConfigCommand.self,
        ]
    )

    /// Runs the verb that the arguments name; every verb handles secrets, so the process is protected first.
    static func main() async {
        ProcessProtection.begin()
        await self.main(nil)
    }
}
