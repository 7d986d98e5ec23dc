import ArgumentParser
import Foundation

/// `explain`: tells what a message would become, without sending it.
struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Show what a message becomes on its way to FCM, and send nothing.",
        discussion: """
            The body is one of POST /v1/tenants/TENANT/messages or of POST /fcm/send; which of the two is seen from \
            its recipient (to and registration_ids are legacy) unless --form says. The gateway is at --url or \
            GATEWAY_URL (default http://127.0.0.1:8080). The key comes from --key-file or GATEWAY_KEY. The exit code \
            is 1 when the message would be refused.
            """
    )

    /// How a body is written.
    enum Form: String, CaseIterable, ExpressibleByArgument {
        /// As for `POST /v1/tenants/{tenant}/messages`.
        case rest
        /// As for `POST /fcm/send`.
        case legacy
    }

    @Argument(help: "The tenant.") var tenant: TenantArgument
    @Argument(help: "A file with the JSON body, or - for standard input.", completion: .file()) var file = "-"
    @Option(name: .long, help: "How the body is written.") var form: Form?
    @OptionGroup var service: ServiceOptions
    @OptionGroup var output: OutputOptions

    mutating func run() async throws {
        let command = self
        let body = try InputFile.read(command.file)
        let output = try await command.service.withClient { try await command.perform($0, body: body) }
        try output.write()
        if output.isRefusal {
            throw ExitCode.failure
        }
    }

    /// Has a body explained.
    ///
    /// - Parameters:
    ///   - client: Calls the data listener.
    ///   - body: JSON text.
    /// - Returns: The explanation.
    /// - Throws: `APIError` or `CommandFailure`.
    func perform(_ client: APIClient, body: Data) async throws -> CommandOutput {
        let form = self.form ?? Self.form(of: body)
        let answer = try await client.call(
            .post,
            ["v1", "tenants", self.tenant.name, "messages", "explain"],
            query: form == .legacy ? [("form", form.rawValue)] : [],
            body: body
        )
        let isRefusal = answer["refused"] != nil
        guard self.output.output == .table else {
            return CommandOutput(try answer.prettyText(), isRefusal: isRefusal)
        }
        return CommandOutput(try Self.text(answer), remark: Self.remark(answer), isRefusal: isRefusal)
    }

    private static func form(of body: Data) -> Form {
        guard let body = try? JSONValue(parsing: body) else { return .rest }
        return body["to"] != nil || body["registration_ids"] != nil ? .legacy : .rest
    }

    private static func text(_ answer: JSONValue) throws -> String {
        var parts: [String] = []
        for request in answer["requests"]?.elements ?? [] {
            let method = request["method"]?.text ?? ""
            let body = try request["body"]?.prettyText() ?? ""
            parts.append("\(method) \(request["url"]?.text ?? "")\n\(body)")
        }
        let fields = (answer["fields"]?.elements ?? [])
            .map { field in
                let members = (field["becomes"]?.elements ?? []).compactMap(\.text)
                return [field["pointer"]?.text ?? "", members.isEmpty ? "(not sent)" : members.joined(separator: ", ")]
            }
        parts.append(TextTable(titles: ["FIELD", "BECOMES"], rows: fields).text)
        let quotas =
            (answer["limits"]?["tenant"]?.elements ?? [])
            + (answer["limits"]?["targets"]?.elements ?? []).prefix(1).flatMap { $0.elements ?? [] }
        parts.append(
            TextTable(columns: ["scope", "rate", "per_s", "burst", "remaining", "reset_s"], objects: quotas).text
        )
        return parts.joined(separator: "\n\n")
    }

    private static func remark(_ answer: JSONValue) -> String {
        var lines: [String] = []
        if let refused = answer["refused"] {
            lines.append("refused: \(refused["code"]?.text ?? ""): \(refused["detail"]?.text ?? "")")
        }
        for warning in answer["warnings"]?.elements ?? [] {
            let pointer = warning["pointer"]?.text ?? ""
            lines.append("warning: \(pointer.isEmpty ? "" : "\(pointer): ")\(warning["detail"]?.text ?? "")")
        }
        let count = answer["request_count"]?.wholeNumber ?? 0
        let shown = answer["requests"]?.elements?.count ?? 0
        let payload = answer["payload"]
        lines.append(
            "\(answer["upstream"]?.text ?? ""): \(count) request\(count == 1 ? "" : "s")"
                + (shown < count ? ", of which the first \(shown) are shown" : "")
                + "; payload \(payload?["bytes"]?.cell ?? "?") of \(payload?["limit"]?.cell ?? "?") bytes"
        )
        return lines.joined(separator: "\n")
    }
}
