import ArgumentParser
import Foundation

/// `limit`: manages a tenant's rate limits.
struct LimitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limit",
        abstract: "Manage a tenant's rate limits.",
        subcommands: [Get.self, Put.self]
    )

    /// The scopes of limits, in the order they are printed.
    static let scopes = ["device", "device_collapsible", "topic", "tenant"]

    /// `limit get`.
    struct Get: AdminVerb {
        static let configuration = CommandConfiguration(abstract: "Show the limits in force.")

        @Argument(help: "The tenant.") var tenant: TenantArgument
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let answer = try await client.call(.get, ["tenants", self.tenant.name, "limits"])
            try print(LimitCommand.output(answer, json: self.wantsJSON))
        }
    }

    /// `limit put`.
    struct Put: AdminVerb {
        static let configuration = CommandConfiguration(
            abstract: "Replace a tenant's limits.",
            discussion: """
                A policy is RATE/PERIOD:BURST, such as 180/60s:60, and admits at most BURST + RATE·t/PERIOD in any span \
                t. Repeat an option for several policies of one scope. Scopes that are not named have the default.
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantArgument
        @Option(name: .long, help: "Messages to one device.") var device: [PolicyArgument] = []
        @Option(name: .long, help: "Messages with a collapse_key to one device.")
        var deviceCollapsible: [PolicyArgument] = []
        @Option(name: .long, help: "Messages to one topic.") var topic: [PolicyArgument] = []
        @Option(name: .customLong("tenant"), help: "All messages of the tenant.")
        var wholeTenant: [PolicyArgument] = []
        @Option(name: .long, help: "A file with the JSON body instead, or - for standard input.", completion: .file())
        var file: String?
        @Flag(name: .long, help: "Return every scope to its default.") var defaults = false
        @OptionGroup var admin: AdminOptions

        private var policies: [(scope: String, policies: [PolicyArgument])] {
            zip(LimitCommand.scopes, [self.device, self.deviceCollapsible, self.topic, self.wholeTenant])
                .filter { !$0.1.isEmpty }
                .map { (scope: $0.0, policies: $0.1) }
        }

        func validate() throws {
            let ways = [!self.policies.isEmpty, self.file != nil, self.defaults]
            if ways.count(where: \.self) != 1 {
                throw ValidationError("Give policies, or --file, or --defaults.")
            }
        }

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let body: Data
            if let file = self.file {
                body = try InputFile.read(file)
            } else {
                let members = self.policies.map { ($0.scope, JSONValue.array($0.policies.map(\.json))) }
                body = try JSONValue.object(Dictionary(uniqueKeysWithValues: members)).encoded()
            }
            let answer = try await client.call(.put, ["tenants", self.tenant.name, "limits"], body: body)
            try print(LimitCommand.output(answer, json: self.wantsJSON))
        }
    }

    private static func output(_ answer: JSONValue, json: Bool) throws -> CommandOutput {
        guard answer != .null else { return CommandOutput("", remark: "limits stored") }
        guard !json else { return CommandOutput(try answer.prettyText()) }
        var rows: [[String]] = []
        for scope in Self.scopes {
            for policy in answer[scope]?.elements ?? [] {
                rows.append([scope] + ["rate", "per_s", "burst"].map { policy[$0]?.cell ?? "" })
            }
        }
        return CommandOutput(TextTable(titles: ["SCOPE", "RATE", "PER_S", "BURST"], rows: rows).text)
    }
}
