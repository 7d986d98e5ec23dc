import ArgumentParser
import EventLoopHTTP
import FCMModel
import GatewayCore
import GatewayService
import HTTPTypes
import NIOCore
import StrictJSON

/// `send`: sends a message through the data listener, as a tenant's service would.
struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send a message with a tenant's key.",
        discussion: """
            The gateway is at --url or GATEWAY_URL (default http://127.0.0.1:8080). The key comes from --key-file, \
            GATEWAY_KEY or GATEWAY_KEY_FILE. The exit code is 1 if any recipient was refused.

            Example:
              fcm-gateway send shop --topic news --title Hello --body World
            """
    )

    @Argument(help: "The tenant.") var tenant: TenantID
    @Option(help: "An idempotency key: for 24 hours, a repeat with this key sends nothing again.")
    var idempotencyKey: String?
    @OptionGroup(title: "Message") var message: MessageOptions
    @OptionGroup var service: ServiceOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let body = try self.message.makeBody()
        try await self.service.call { try await self.perform($0, body: body) }
    }

    func perform(_ client: APIClient, body: ByteBuffer) async throws -> CommandOutput {
        let path = ["v1", "tenants", self.tenant.text, "messages"]
        let name = HTTPField.Name(constant: "Idempotency-Key")
        let headers: HTTPHeaderLines = self.idempotencyKey.map { [name: $0] } ?? [:]
        guard let answer = try await client.call(.post, path, headers: headers, body: body) else {
            throw CommandFailure("the gateway's answer is empty")
        }
        let rejected = answer.integer("rejected") ?? 0
        var output: CommandOutput
        if answer["results"] == nil || self.output.isJSON {
            let columns = ["id", "status", "message_id", "replacement_token", "warnings"]
            output = .object(answer, columns: columns, json: self.output.isJSON)
        } else {
            let results = answer.list("results")
            let columns = ["status", "code", "retry_after", "message_id", "token", "replacement_token"]
            let shown = columns.filter { column in results.contains { $0[column] != nil } }
            let accepted = answer["accepted"]?.cell ?? "?"
            output = CommandOutput(
                TextTable(columns: shown, objects: results).styled,
                remark: "message \(answer["id"]?.cell ?? "?"): \(accepted) accepted, \(rejected) rejected"
            )
        }
        output.isRefusal = rejected > 0
        return output
    }
}

/// The options that define a message, or name a file with a message.
struct MessageOptions: ParsableArguments {
    enum Priority: String, CaseIterable, ExpressibleByArgument {
        case normal
        case high
    }

    /// One member of a message's data, `name=value`.
    struct DataMember: ExpressibleByArgument, Equatable {
        let name: String
        let value: String

        init?(argument: String) {
            guard let separator = argument.firstIndex(of: "="), separator != argument.startIndex else { return nil }
            self.name = String(argument[..<separator])
            self.value = String(argument[argument.index(after: separator)...])
        }
    }

    @Option(name: .customLong("token"), help: "A device's registration token; repeat it for several.")
    var tokens: [String] = []
    @Option(name: .long, help: "A file with one token a line, or - for standard input.", completion: .file())
    var tokensFile: String?
    @Option(name: .customLong("fid"), help: "A Firebase installation's id; repeat it for several.")
    var installations: [String] = []
    @Option(name: .long, help: "A device group's name.") var deviceGroup: String?
    @Option(name: .long, help: "A topic's name, without /topics/.") var topic: String?
    @Option(name: .long, help: "A topic expression, such as \"'a' in topics && 'b' in topics\".")
    var condition: String?
    @Option(name: .long, help: "The notification's title.") var title: String?
    @Option(name: .long, help: "The notification's text.") var body: String?
    @Option(name: .long, help: "The address of the notification's image.") var image: String?
    @Option(name: .customLong("data"), help: "A member of the data, name=value; may be repeated.")
    var data: [DataMember] = []
    @Option(name: .long, help: "The delivery priority.") var priority: Priority?
    @Option(name: .long, help: "Messages with the same key replace each other while a device is off.")
    var collapseKey: String?
    @Option(name: .long, help: "The only Android package that gets the message.") var restrictedPackageName: String?
    @Flag(name: .long, help: "Wake the app on iOS.") var contentAvailable = false
    @Flag(name: .long, help: "Let the iOS app change the notification before it is shown.") var mutableContent = false
    @Option(name: .long, help: "The time for which FCM keeps the message for a device that is off, such as 15m.")
    var ttl: DurationArgument?
    @Flag(name: .long, help: "Check everything and deliver nothing.") var dryRun = false
    @Option(name: .long, help: "A file with the whole JSON body, or - for standard input.", completion: .file())
    var file: String?

    func validate() throws {
        let targets = [
            !self.tokens.isEmpty, self.tokensFile != nil, !self.installations.isEmpty, self.deviceGroup != nil,
            self.topic != nil, self.condition != nil,
        ]
        let texts = [
            self.title, self.body, self.image, self.priority?.rawValue, self.collapseKey, self.restrictedPackageName,
        ]
        let hasContent =
            texts.contains { $0 != nil } || !self.data.isEmpty || self.ttl != nil || self.contentAvailable
            || self.mutableContent
        if self.file != nil {
            if targets.contains(true) || hasContent || self.dryRun {
                throw ValidationError("--file holds the whole message; give no other options of the message.")
            }
            return
        }
        if targets.count(where: \.self) != 1 {
            throw ValidationError(
                "Give exactly one of --token, --tokens-file, --fid, --device-group, --topic, --condition and --file."
            )
        }
        if Set(self.data.map(\.name)).count != self.data.count {
            throw ValidationError("--data names a member twice.")
        }
        if let ttl = self.ttl, ttl.seconds > Message.maxTimeToLive {
            throw ValidationError("--ttl must be at most 28d.")
        }
    }

    /// Returns the JSON body. A file's content stays unchanged, so that the gateway validates it.
    func makeBody() throws(CommandFailure) -> ByteBuffer {
        if let file = self.file { return try InputFile.read(file) }
        let tokens = if let file = self.tokensFile { try InputFile.readTokens(file) } else { self.tokens }
        let isList = self.tokensFile != nil || tokens.count > 1
        return JSONWriter.object { writer in
            writer.member("collapse_key", ifPresent: self.collapseKey)
            writer.member("condition", ifPresent: self.condition)
            if self.contentAvailable { writer.member("content_available", true) }
            if !self.data.isEmpty {
                writer.object("data") { writer in
                    for member in self.data {
                        writer.key(member.name)
                        writer.string(member.value)
                    }
                }
            }
            writer.member("device_group", ifPresent: self.deviceGroup)
            if self.dryRun { writer.member("dry_run", true) }
            if self.installations.count > 1 {
                writer.member("fids", self.installations)
            } else {
                writer.member("fid", ifPresent: self.installations.first)
            }
            if self.mutableContent { writer.member("mutable_content", true) }
            if self.title != nil || self.body != nil || self.image != nil {
                writer.object("notification") { writer in
                    writer.member("body", ifPresent: self.body)
                    writer.member("image", ifPresent: self.image)
                    writer.member("title", ifPresent: self.title)
                }
            }
            writer.member("priority", ifPresent: self.priority?.rawValue)
            writer.member("restricted_package_name", ifPresent: self.restrictedPackageName)
            if isList { writer.member("tokens", tokens) } else { writer.member("token", ifPresent: tokens.first) }
            writer.member("topic", ifPresent: self.topic)
            if let ttl = self.ttl { writer.member("ttl", ttl.seconds) }
        }
    }
}
