import ArgumentParser
import GatewayCore
import GatewayService
import NIOCore
import StrictJSON

/// `explain`: shows the requests to FCM that a message would become, and sends nothing.
struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Show the requests to FCM that a message becomes, and send nothing.",
        discussion: """
            Without --form, a body with the member to or registration_ids is a legacy body, as for POST /fcm/send. Any \
            other body is a REST body, as for POST /v1/tenants/TENANT/messages. The gateway is at --url or GATEWAY_URL \
            (default http://127.0.0.1:8080). The key comes from --key-file, GATEWAY_KEY or GATEWAY_KEY_FILE. The exit \
            code is 1 if the gateway would refuse the message.

            Example:
              fcm-gateway explain shop message.json
            """
    )

    enum Form: String, CaseIterable, ExpressibleByArgument {
        /// As for `POST /v1/tenants/{tenant}/messages`.
        case rest
        /// As for `POST /fcm/send`.
        case legacy
    }

    @Argument(help: "The tenant.") var tenant: TenantID
    @Argument(help: "A file with the JSON body, or - for standard input.", completion: .file()) var file = "-"
    @Option(name: .long, help: "The form of the body.") var form: Form?
    @OptionGroup var service: ServiceOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let body = try InputFile.read(self.file)
        try await self.service.call { try await self.perform($0, body: body) }
    }

    func perform(_ client: APIClient, body: ByteBuffer) async throws -> CommandOutput {
        let form = self.form ?? Self.form(of: body)
        let path = ["v1", "tenants", self.tenant.text, "messages", "explain"]
        let query = form == .legacy ? [(name: "form", value: form.rawValue)] : []
        guard let answer = try await client.call(.post, path, query: query, body: body) else {
            throw CommandFailure("the gateway's answer is empty")
        }
        let isRefusal = answer["refused"] != nil
        guard !self.output.isJSON else { return CommandOutput(answer.prettyText(), isRefusal: isRefusal) }
        return CommandOutput(Self.text(answer), remark: Self.remark(answer), isRefusal: isRefusal)
    }

    private static func form(of body: ByteBuffer) -> Form {
        guard let body = try? JSONDocument(parsing: body, limits: .trusted).root else { return .rest }
        return body["to"] != nil || body["registration_ids"] != nil ? .legacy : .rest
    }

    private static func text(_ answer: JSONValue) -> String {
        var parts = answer.list("requests")
            .map { request in
                let line = "\(request.text("method") ?? "") \(request.text("url") ?? "")"
                let fields = request["headers"]?.members?.map { "\($0.key): \($0.value.string ?? "")" } ?? []
                return ([line] + fields + [request["body"]?.prettyText() ?? ""]).joined(separator: "\n")
            }
        let fields = answer.list("fields")
            .map { field in
                let members = field.list("becomes").compactMap(\.string)
                return [field.text("pointer") ?? "", members.isEmpty ? "(not sent)" : members.joined(separator: ", ")]
            }
        parts.append(TextTable(titles: ["FIELD", "BECOMES"], rows: fields).text)
        let limits = answer["limits"]
        let target = limits?.list("targets").first?.elements
        let quotas = (limits?.list("tenant") ?? []) + (target.map { Array($0) } ?? [])
        let rows = quotas.map { quota in
            let left = ["remaining", "reset_s"].map { quota[$0]?.cell ?? "" }
            return [quota.text("scope") ?? "", LimitCommand.policy(quota)] + left
        }
        parts.append(TextTable(titles: ["SCOPE", "POLICY", "REMAINING", "RESET_S"], rows: rows).text)
        return parts.joined(separator: "\n\n")
    }

    private static func remark(_ answer: JSONValue) -> String {
        var lines: [String] = []
        if let refused = answer["refused"] {
            lines.append("refused: \(refused.text("code") ?? ""): \(refused.text("detail") ?? "")")
        }
        for warning in answer.list("warnings") {
            let pointer = warning.text("pointer") ?? ""
            lines.append("warning: \(pointer.isEmpty ? "" : "\(pointer): ")\(warning.text("detail") ?? "")")
        }
        let count = answer.integer("request_count") ?? 0
        let shown = answer.list("requests").count
        let payload = answer["payload"]
        lines.append(
            "\(answer.text("upstream") ?? ""): \(count) request\(count == 1 ? "" : "s")"
                + (shown < count ? ", of which the first \(shown) are shown" : "")
                + "; payload \(payload?["bytes"]?.cell ?? "?") of \(payload?["limit"]?.cell ?? "?") bytes"
        )
        return lines.joined(separator: "\n")
    }
}
