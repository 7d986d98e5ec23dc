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

    @Argument(help: "The tenant.") var tenant: TenantArgument
    @Option(help: "A key under which this send can be repeated for 24 hours without being made twice.")
    var idempotencyKey: String?
    @OptionGroup(title: "Message") var message: MessageOptions
    @OptionGroup var service: ServiceOptions
    @OptionGroup var output: OutputOptions

    mutating func run() async throws {
        let command = self
        let body = try command.message.makeBody()
        let output = try await command.service.withClient { try await command.perform($0, body: body) }
        try output.write()
        if output.isRefusal {
            throw ExitCode.failure
        }
    }

    /// Sends a body.
    ///
    /// - Parameters:
    ///   - client: Calls the data listener.
    ///   - body: JSON text.
    /// - Returns: What became of it.
    /// - Throws: `APIError` or `CommandFailure`.
    func perform(_ client: APIClient, body: Data) async throws -> CommandOutput {
        let answer = try await client.call(
            .post,
            ["v1", "tenants", self.tenant.name, "messages"],
            headers: self.idempotencyKey.map { [("Idempotency-Key", $0)] } ?? [],
            body: body
        )
        let rejected = answer["rejected"]?.wholeNumber ?? 0
        var output: CommandOutput
        if self.output.output == .json {
            output = CommandOutput(try answer.prettyText())
        } else if let results = answer["results"]?.elements {
            let columns = ["status", "code", "retry_after", "message_id", "token", "replacement_token"]
            let shown = columns.filter { column in results.contains { $0[column] != nil } }
            let accepted = answer["accepted"]?.cell ?? "?"
            output = CommandOutput(
                TextTable(columns: shown, objects: results).styled,
                remark: "message \(answer["id"]?.cell ?? "?"): \(accepted) accepted, \(rejected) rejected"
            )
        } else {
            let columns = ["id", "status", "message_id", "replacement_token", "warnings"]
            output = CommandOutput(TextTable(object: answer, columns: columns).styled)
        }
        output.isRefusal = rejected > 0
        return output
    }
}
