import ArgumentParser
import GatewayCore
import NIOCore
import StrictJSON

/// `tenant`: manages tenants.
struct TenantCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tenant",
        abstract: "Manage tenants.",
        subcommands: [List.self, Get.self, Put.self, Delete.self, TenantApplyCommand.self]
    )

    static let columns = [
        "tenant", "display_name", "upstream", "project_id", "sender_id", "disabled", "client_names", "created_at",
        "updated_at",
    ]

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

    struct Get: AdminVerb {
        static let configuration = CommandConfiguration(abstract: "Show one tenant.")

        @Argument(help: "The tenant.") var tenant: TenantID
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let answer = try await client.call(.get, ["tenants", self.tenant.text])
            try print(.object(answer, columns: TenantCommand.columns, json: self.wantsJSON))
        }
    }

    struct Put: AdminVerb {
        static let configuration = CommandConfiguration(
            abstract: "Create a tenant, or replace its settings.",
            discussion: "The tenant becomes exactly what the options say: what is not named is reset."
        )

        @Argument(help: "The tenant: a-z, 0-9 and -, at most 63 characters.") var tenant: TenantID
        @Option(name: .long, help: "A name for people (default: the tenant's name).") var displayName: String?
        @Option(name: .long, help: "The protocol its messages go through.") var upstream: UpstreamKind = .legacy
        @Option(name: .long, help: "The Firebase project's id (default: the tenant's name).") var projectID: String?
        @Option(name: .long, help: "The Firebase sender's id.") var senderID: String?
        @Flag(name: .long, help: "Refuse all of the tenant's requests.") var disabled = false
        @Option(
            name: .long,
            help: "A DNS name or URI that client certificates may carry; may be repeated. None asks for no certificate."
        )
        var clientName: [ClientName] = []
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let draft = TenantDraft(
                displayName: self.displayName ?? self.tenant.text,
                upstream: self.upstream,
                projectID: self.projectID,
                senderID: self.senderID,
                isDisabled: self.disabled,
                clientNames: self.clientName
            )
            let body = TenantCommand.body(draft)
            let answer = try await client.call(.put, ["tenants", self.tenant.text], body: body)
            try print(.object(answer, columns: TenantCommand.columns, json: self.wantsJSON))
        }
    }

    struct Delete: AdminVerb {
        static let configuration = CommandConfiguration(
            abstract: "Delete a tenant with its keys, credentials and limits."
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            _ = try await client.call(.delete, ["tenants", self.tenant.text])
            let output = CommandOutput.done("tenant \(self.tenant) deleted", json: self.wantsJSON) { writer in
                writer.member("tenant", self.tenant.text)
                writer.member("deleted", true)
            }
            try print(output)
        }
    }

    static func body(_ draft: TenantDraft) -> ByteBuffer {
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
