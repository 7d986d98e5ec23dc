import ArgumentParser
import Foundation

/// `tenant`: manages tenants.
struct TenantCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tenant",
        abstract: "Manage tenants.",
        subcommands: [List.self, Get.self, Put.self, Delete.self, TenantApplyCommand.self]
    )

    /// The members of a tenant, in the order they are printed.
    static let columns = [
        "tenant", "display_name", "upstream", "project_id", "sender_id", "disabled", "client_names", "created_at",
        "updated_at",
    ]

    /// Which of FCM's protocols a tenant's messages go through.
    enum Upstream: String, CaseIterable, ExpressibleByArgument {
        /// The legacy HTTP protocol.
        case legacy
        /// HTTP v1.
        case v1
    }

    /// `tenant list`.
    struct List: AdminVerb {
        static let configuration = CommandConfiguration(abstract: "List all tenants.")

        @OptionGroup var admin: AdminOptions
        @OptionGroup var list: ListOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let tenants = try await client.list(["tenants"], member: "tenants", limit: self.list.limit)
            let columns = ["tenant", "display_name", "upstream", "project_id", "disabled", "updated_at"]
            try print(.list(tenants, member: "tenants", columns: columns, json: self.wantsJSON))
        }
    }

    /// `tenant get`.
    struct Get: AdminVerb {
        static let configuration = CommandConfiguration(abstract: "Show one tenant.")

        @Argument(help: "The tenant.") var tenant: TenantArgument
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let answer = try await client.call(.get, ["tenants", self.tenant.name])
            try print(.object(answer, columns: TenantCommand.columns, json: self.wantsJSON))
        }
    }

    /// `tenant put`.
    struct Put: AdminVerb {
        static let configuration = CommandConfiguration(
            abstract: "Create a tenant, or replace its settings.",
            discussion: "The tenant becomes exactly what the options say: what is not named is reset."
        )

        @Argument(help: "The tenant: a-z, 0-9 and -, at most 63 characters.") var tenant: TenantArgument
        @Option(name: .long, help: "A name for people (default: the tenant's name).") var displayName: String?
        @Option(name: .long, help: "The protocol its messages go through.") var upstream: Upstream = .legacy
        @Option(name: .long, help: "The Firebase project's id (default: the tenant's name).") var projectID: String?
        @Option(name: .long, help: "The Firebase sender's id.") var senderID: String?
        @Flag(name: .long, help: "Refuse all of the tenant's requests.") var disabled = false
        @Option(
            name: .long,
            help: "A DNS name or URI that client certificates may carry; may be repeated. None asks for no certificate."
        )
        var clientName: [String] = []
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            var members: [String: JSONValue] = [
                "display_name": .string(self.displayName ?? self.tenant.name),
                "upstream": .string(self.upstream.rawValue),
                "disabled": .bool(self.disabled),
            ]
            members["project_id"] = self.projectID.map(JSONValue.string)
            members["sender_id"] = self.senderID.map(JSONValue.string)
            if !self.clientName.isEmpty { members["client_names"] = .array(self.clientName.map(JSONValue.string)) }
            let body = try JSONValue.object(members).encoded()
            let answer = try await client.call(.put, ["tenants", self.tenant.name], body: body)
            try print(.object(answer, columns: TenantCommand.columns, json: self.wantsJSON))
        }
    }

    /// `tenant delete`.
    struct Delete: AdminVerb {
        static let configuration = CommandConfiguration(
            abstract: "Delete a tenant with its keys, credentials and limits."
        )

        @Argument(help: "The tenant.") var tenant: TenantArgument
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let answer = try await client.call(.delete, ["tenants", self.tenant.name])
            let members: [String: JSONValue] = ["tenant": .string(self.tenant.name), "deleted": .bool(true)]
            try print(.done("tenant \(self.tenant.name) deleted", answer, members: members, json: self.wantsJSON))
        }
    }
}
