import ArgumentParser
import GatewayCore
import NIOCore
import StrictJSON

/// Options for the policies of a tenant's scopes.
struct PolicyOptions: ParsableArguments {
    static let explanation = """
        A policy is RATE/PERIOD:BURST, such as 180/60s:60. It admits at most BURST + RATE·t/PERIOD messages in any \
        span t. Repeat an option to give one scope several policies.
        """

    @Option(name: .long, help: "Messages to one device.") var device: [RatePolicy] = []
    @Option(name: .long, help: "Messages with a collapse_key to one device.") var deviceCollapsible: [RatePolicy] = []
    @Option(name: .long, help: "Messages to one topic.") var topic: [RatePolicy] = []
    @Option(name: .customLong("tenant"), help: "All messages of the tenant.") var wholeTenant: [RatePolicy] = []

    var limits: [LimitScope: [RatePolicy]] {
        let limits: [LimitScope: [RatePolicy]] = [
            .device: self.device, .deviceCollapsible: self.deviceCollapsible, .topic: self.topic,
            .tenant: self.wholeTenant,
        ]
        return limits.filter { !$0.value.isEmpty }
    }
}

/// `limit`: manages a tenant's rate limits.
struct LimitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limit",
        abstract: "Manage a tenant's rate limits.",
        subcommands: [Get.self, Put.self, Set.self, Reset.self]
    )

    struct Get: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "get",
            abstract: "Show the limits in force.",
            discussion: """
                Example:
                  fcm-gateway limit get shop
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let answer = try await client.call(.get, ["tenants", self.tenant.text, "limits"])
            try print(LimitCommand.output(answer, json: self.wantsJSON))
        }
    }

    struct Put: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "put",
            abstract: "Replace a tenant's limits.",
            discussion: """
                Scopes without an option get the default. If that resets limits of the tenant, the command lists their \
                scopes and asks for confirmation. fcm-gateway limit set changes only the named scopes. \
                \(PolicyOptions.explanation)

                Example:
                  fcm-gateway limit put shop --device 240/60s:60 --tenant 1000/1s:2000
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @OptionGroup var policies: PolicyOptions
        @Option(name: .long, help: "A file with the JSON body, or - for standard input.", completion: .file())
        var file: String?
        @Flag(name: .long, help: "Reset every scope to its default.") var defaults = false
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var admin: AdminOptions

        func validate() throws {
            let ways = [!self.policies.limits.isEmpty, self.file != nil, self.defaults]
            if ways.count(where: \.self) != 1 { throw ValidationError("Give policies, or --file, or --defaults.") }
        }

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let path = ["tenants", self.tenant.text, "limits"]
            let body = try self.file.map { try InputFile.read($0) } ?? LimitCommand.body(self.policies.limits)
            var tag: String?
            if !self.defaults {
                let named = try? JSONDocument(parsing: body, limits: .trusted).root
                let present = try await client.find(path)
                tag = present?.tag
                let own = present?.json.list("own").compactMap(\.string) ?? []
                let lost = own.filter { named?[$0] == nil }
                if !lost.isEmpty {
                    let list = lost.joined(separator: ", ")
                    try self.confirmation.confirm(
                        "This resets tenant \(self.tenant) to the default for \(list). Continue?"
                    )
                }
            }
            let answer = try await client.call(.put, path, ifMatch: tag, body: body)
            try print(LimitCommand.output(answer, json: self.wantsJSON))
        }
    }

    struct Set: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "set",
            abstract: "Change the limits of some scopes.",
            discussion: """
                Scopes without an option stay unchanged. \(PolicyOptions.explanation)

                Example:
                  fcm-gateway limit set shop --device 240/60s:60
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @OptionGroup var policies: PolicyOptions
        @OptionGroup var admin: AdminOptions

        func validate() throws {
            if self.policies.limits.isEmpty { throw ValidationError("Give at least one policy.") }
        }

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let body = LimitCommand.body(self.policies.limits)
            let answer = try await client.call(.patch, ["tenants", self.tenant.text, "limits"], body: body)
            try print(LimitCommand.output(answer, json: self.wantsJSON))
        }
    }

    struct Reset: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "reset",
            abstract: "Reset the limits of some scopes to their defaults.",
            discussion: """
                Example:
                  fcm-gateway limit reset shop device topic
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @Argument(help: "The scopes.") var scopes: [LimitScope]
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let body = JSONWriter.object { writer in
                for scope in self.scopes {
                    writer.key(scope.rawValue)
                    writer.null()
                }
            }
            let answer = try await client.call(.patch, ["tenants", self.tenant.text, "limits"], body: body)
            try print(LimitCommand.output(answer, json: self.wantsJSON))
        }
    }

    private static let scopes: [LimitScope] = [.device, .deviceCollapsible, .topic, .tenant]

    static func body(_ limits: [LimitScope: [RatePolicy]]) -> ByteBuffer {
        JSONWriter.object { writer in
            for scope in Self.scopes {
                guard let policies = limits[scope] else { continue }
                writer.key(scope.rawValue)
                writer.array(policies) { writer, policy in
                    writer.object { writer in
                        writer.member("burst", policy.burst)
                        writer.member("per_s", policy.periodSeconds)
                        writer.member("rate", policy.rate)
                    }
                }
            }
        }
    }

    private static func output(_ answer: JSONValue?, json: Bool) -> CommandOutput {
        guard let answer else { return CommandOutput("", remark: "limits stored") }
        guard !json else { return CommandOutput(answer.prettyText()) }
        let rows = Self.scopes.flatMap { scope in
            answer.list(scope.rawValue).map { [scope.rawValue, Self.policy($0)] }
        }
        return CommandOutput(TextTable(titles: ["SCOPE", "POLICY"], rows: rows).text)
    }

    /// Returns a policy of an answer in the notation of the options.
    static func policy(_ json: JSONValue) -> String {
        let (rate, period, burst) = (json["rate"]?.cell, json["per_s"]?.cell, json["burst"]?.cell)
        return "\(rate ?? "?")/\(period ?? "?")s:\(burst ?? "?")"
    }
}
