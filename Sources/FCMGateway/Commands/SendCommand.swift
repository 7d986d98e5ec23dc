import ArgumentParser
import Foundation

/// `send`: sends a message through the data listener, as a tenant's service would.
struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send a message with a tenant's key.",
        discussion: """
            The gateway is at --url or GATEWAY_URL (default http://127.0.0.1:8080). The key comes from --key-file or \
            GATEWAY_KEY. The exit code is 1 when any recipient was refused.
            """
    )

    /// The data listener's default address.
    static let defaultURL = "http://127.0.0.1:8080"

    @Argument(help: "The tenant.") var tenant: TenantArgument
    @OptionGroup(title: "Message") var message: MessageOptions
    @Option(name: .long, help: "The data listener's address.") var url: BaseURL?
    @Option(name: .long, help: "The file that holds the API key, or - for standard input.") var keyFile: String?
    @OptionGroup var output: OutputOptions

    mutating func run() async throws {
        let command = self
        let environment = ProcessInfo.processInfo.environment
        let baseURL =
            try command.url
            ?? BaseURL.fromVariable("GATEWAY_URL", default: Self.defaultURL, environment: environment)
        let key = try command.key(environment: environment)
        let body = try command.message.makeBody()
        let output = try await APIClient.withHTTPClient { http in
            try await command.perform(APIClient(http: http, baseURL: baseURL, token: key), body: body)
        }
        output.write()
        if output.isRefusal {
            throw ExitCode.failure
        }
    }

    /// The API key in force.
    ///
    /// - Parameter environment: The process's variables.
    /// - Returns: The option's key, else the environment's.
    /// - Throws: `ValidationError` when there is none, `CommandFailure` when it cannot be read.
    func key(environment: [String: String]) throws -> Redacted<String> {
        try BearerToken.find(
            file: self.keyFile,
            option: "--key-file",
            variable: "GATEWAY_KEY",
            environment: environment
        )
    }

    /// Sends a body.
    ///
    /// - Parameters:
    ///   - client: Calls the data listener.
    ///   - body: JSON text.
    /// - Returns: What became of it.
    /// - Throws: `Refusal` or `CommandFailure`.
    func perform(_ client: APIClient, body: Data) async throws -> CommandOutput {
        let answer = try await client.call(.post, ["v1", "tenants", self.tenant.name, "messages"], body: body)
        let rejected = answer["rejected"]?.wholeNumber ?? 0
        var output: CommandOutput
        if self.output.output == .json {
            output = CommandOutput(try answer.prettyText())
        } else if let results = answer["results"]?.elements {
            let columns = ["status", "code", "retry_after", "message_id", "token", "replacement_token"]
            let shown = columns.filter { column in results.contains { $0[column] != nil } }
            let accepted = answer["accepted"]?.cell ?? "?"
            output = CommandOutput(
                TextTable(columns: shown, objects: results).text,
                remark: "message \(answer["id"]?.cell ?? "?"): \(accepted) accepted, \(rejected) rejected"
            )
        } else {
            let columns = ["id", "status", "message_id", "replacement_token", "warnings"]
            output = CommandOutput(TextTable(object: answer, columns: columns).text)
        }
        output.isRefusal = rejected > 0
        return output
    }
}
