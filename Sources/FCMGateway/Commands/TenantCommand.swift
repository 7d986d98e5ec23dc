import ArgumentParser
import GatewayCore
import NIOCore
import StrictJSON

/// `tenant`: manages tenants.
struct TenantCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tenant",
        abstract: "Manage tenants.",
        subcommands: [
            List.self, Get.self, Put.self, Set.self, Enable.self, Disable.self, Delete.self, TenantApplyCommand.self,
            TenantDiffCommand.self,
        ]
    )

    static let columns = [
        "tenant", "display_name", "upstream", "project_id", "sender_id", "disabled", "client_names", "created_at",
        "updated_at",
    ]

    struct List: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List all tenants.",
            discussion: """
                Example:
                  fcm-gateway tenant list
                """
        )

        @OptionGroup var admin: AdminOptions
        @OptionGroup var list: ListOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let tenants = try await client.list(["tenants"], member: "tenants", limit: self.list.limit)
            let columns = ["tenant", "display_name", "upstream", "project_id", "disabled", "updated_at"]
            try print(.list(tenants, member: "tenants", columns: columns, json: self.wantsJSON))
        }
    }

    struct Get: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "get",
            abstract: "Show one tenant.",
            discussion: """
                Example:
                  fcm-gateway tenant get shop
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let answer = try await client.call(.get, ["tenants", self.tenant.text])
            try print(.object(answer, columns: TenantCommand.columns, json: self.wantsJSON))
        }
    }

    struct Put: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "put",
            abstract: "Create a tenant, or replace its settings.",
            discussion: """
                The options define all settings of the tenant. If that resets a setting that no option names, the \
                command shows it and asks for confirmation. fcm-gateway tenant set changes only the named settings.

                Example:
                  fcm-gateway tenant put shop --display-name Shop --project-id shop-1a2b
                """
        )

        @Argument(help: "The tenant: a-z, 0-9 and -, at most 63 characters.") var tenant: TenantID
        @Option(name: .long, help: "A name for people (default: the tenant's name).") var displayName: String?
        @Option(name: .long, help: "The protocol its messages go through (default: v1).") var upstream: UpstreamKind?
        @Option(name: .long, help: "The Firebase project's id (default: the tenant's name).") var projectID: String?
        @Option(name: .long, help: "The Firebase sender's id.") var senderID: String?
        @Flag(name: .long, help: "Refuse all of the tenant's requests.") var disabled = false
        @Option(
            name: .long,
            help: "A DNS name or URI that client certificates may carry; may be repeated (default: no certificate)."
        )
        var clientName: [ClientName] = []
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let path = ["tenants", self.tenant.text]
            let present = try await client.find(path)
            let draft = Tenant.Draft(
                displayName: self.displayName ?? self.tenant.text,
                upstream: self.upstream ?? Tenant.Draft.defaultUpstream,
                projectID: self.projectID,
                senderID: self.senderID,
                isDisabled: self.disabled,
                clientNames: self.clientName
            )
            let resets = present.map { self.resets(of: $0.json) } ?? []
            if !resets.isEmpty {
                let list = resets.map { "  \($0)\n" }.joined()
                try self.confirmation.confirm(
                    "This resets settings of tenant \(self.tenant) that no option names:\n\(list)Continue?"
                )
            }
            let answer = try await client.call(.put, path, ifMatch: present?.tag, body: TenantCommand.body(draft))
            try print(.object(answer, columns: TenantCommand.columns, json: self.wantsJSON))
        }

        /// Returns the settings that the call would reset although no option names them.
        private func resets(of present: JSONValue) -> [String] {
            var resets: [String] = []
            func compare(_ key: String, isNamed: Bool, _ new: String?) {
                guard !isNamed, let value = present[key]?.cell, value != new ?? "" else { return }
                resets.append("\(key): \(value) → \(new ?? "none")")
            }
            compare("display_name", isNamed: self.displayName != nil, self.tenant.text)
            compare("upstream", isNamed: self.upstream != nil, Tenant.Draft.defaultUpstream.rawValue)
            compare("project_id", isNamed: self.projectID != nil, nil)
            compare("sender_id", isNamed: self.senderID != nil, nil)
            compare("client_names", isNamed: !self.clientName.isEmpty, nil)
            compare("disabled", isNamed: self.disabled, "false")
            return resets
        }
    }

    /// A setting that `tenant set --reset` can name.
    enum Setting: String, CaseIterable, ExpressibleByArgument {
        case displayName = "display-name"
        case upstream
        case projectID = "project-id"
        case senderID = "sender-id"
        case clientNames = "client-names"

        var key: String { self.rawValue.replacing("-", with: "_") }
    }

    struct Set: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "set",
            abstract: "Change some of a tenant's settings.",
            discussion: """
                Settings without an option stay unchanged.

                Example:
                  fcm-gateway tenant set shop --upstream v1 --reset sender-id
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @Option(name: .long, help: "A name for people.") var displayName: String?
        @Option(name: .long, help: "The protocol its messages go through.") var upstream: UpstreamKind?
        @Option(name: .long, help: "The Firebase project's id.") var projectID: String?
        @Option(name: .long, help: "The Firebase sender's id.") var senderID: String?
        @Option(
            name: .long,
            help: "A DNS name or URI that client certificates may carry; may be repeated. Replaces all names."
        )
        var clientName: [ClientName] = []
        @Option(name: .customLong("reset"), help: "Resets a setting to a new tenant's value; may be repeated.")
        var resets: [Setting] = []
        @OptionGroup var admin: AdminOptions

        func validate() throws {
            if (try? JSONDocument(parsing: self.body, limits: .trusted).root.members.map(Array.init)?.isEmpty) ?? true {
                throw ValidationError("Give at least one setting to change.")
            }
        }

        private var body: ByteBuffer {
            JSONWriter.object { writer in
                if !self.clientName.isEmpty { writer.member("client_names", self.clientName.map(\.text)) }
                writer.member("display_name", ifPresent: self.displayName)
                writer.member("project_id", ifPresent: self.projectID)
                writer.member("sender_id", ifPresent: self.senderID)
                writer.member("upstream", ifPresent: self.upstream?.rawValue)
                for setting in self.resets {
                    writer.key(setting.key)
                    writer.null()
                }
            }
        }

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            try await TenantCommand.patch(self.tenant, self.body, client, json: self.wantsJSON, print)
        }
    }

    struct Enable: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "enable",
            abstract: "Let a tenant send again.",
            discussion: """
                Example:
                  fcm-gateway tenant enable shop
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let body = JSONWriter.object { $0.member("disabled", false) }
            try await TenantCommand.patch(self.tenant, body, client, json: self.wantsJSON, print)
        }
    }

    struct Disable: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "disable",
            abstract: "Refuse all of a tenant's requests.",
            discussion: """
                Example:
                  fcm-gateway tenant disable shop
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let body = JSONWriter.object { $0.member("disabled", true) }
            try await TenantCommand.patch(self.tenant, body, client, json: self.wantsJSON, print)
        }
    }

    struct Delete: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "delete",
            abstract: "Delete a tenant with its keys, credentials and limits.",
            discussion: """
                Example:
                  fcm-gateway tenant delete shop
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            try self.confirmation.confirm("Delete \(self.tenant), with keys, credentials and limits, for good?")
            _ = try await client.call(.delete, ["tenants", self.tenant.text])
            let output = CommandOutput.done("tenant \(self.tenant) deleted", json: self.wantsJSON) { writer in
                writer.member("tenant", self.tenant.text)
                writer.member("deleted", true)
            }
            try print(output)
        }
    }

    private static func patch(
        _ tenant: TenantID,
        _ body: ByteBuffer,
        _ client: AdminClient,
        json: Bool,
        _ print: (CommandOutput) throws -> Void
    ) async throws {
        let answer = try await client.call(.patch, ["tenants", tenant.text], body: body)
        try print(.object(answer, columns: Self.columns, json: json))
    }

    static func body(_ draft: Tenant.Draft) -> ByteBuffer {
        JSONWriter.object { writer in
            if !draft.clientNames.isEmpty { writer.member("client_names", draft.clientNames.map(\.text)) }
            writer.member("disabled", draft.isDisabled)
            writer.member("display_name", draft.displayName)
            writer.member("project_id", ifPresent: draft.projectID)
            writer.member("sender_id", ifPresent: draft.senderID)
            writer.member("upstream", draft.upstream.rawValue)
        }
    }
}
