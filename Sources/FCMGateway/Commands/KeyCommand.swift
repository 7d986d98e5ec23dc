import ArgumentParser
import Foundation
import GatewayCore
import GatewayService

/// `key`: manages the keys that tenants' services present.
struct KeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "Manage a tenant's API keys.",
        subcommands: [Create.self, List.self, Rotate.self, Revoke.self, KeyGenerateCommand.self]
    )

    /// The members of a key, in the order they are printed.
    static let columns = ["id", "name", "scopes", "topic_prefixes", "expires_at", "created_at", "revoked_at"]

    /// `key create`.
    struct Create: AdminVerb {
        static let configuration = CommandConfiguration(
            abstract: "Create a key and print it, this once.",
            discussion: """
                The key alone goes to standard output, what is known about it to standard error. Scopes: messages:send, \
                device-groups:manage, topics:manage, audit:read, tokens:read, \
                tokens:manage.

                With --key-file, a key that exists already is imported instead, so that gateways with stores of their own \
                accept the same key; then nothing is shown. Importing it again changes nothing. key generate makes one.
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantArgument
        @Option(
            name: .customLong("scope"),
            help: "What the key may do; repeat it for several.",
            completion: .list(Scope.allCases.map(\.rawValue))
        )
        var scopes: [String] = []
        @Option(name: .long, help: "A name for people.") var name: String?
        @Option(name: .customLong("topic-prefix"), help: "Limits the key to topics that begin so; may be repeated.")
        var topicPrefixes: [String] = []
        @Option(name: .long, help: "When the key ends, as in 2026-01-31T12:00:00Z (default: never).")
        var expiresAt: TimestampArgument?
        @Option(
            name: .long,
            help: "The file that holds the key to import, or - for standard input (default: make a new key).",
            completion: .file()
        )
        var keyFile: String?
        @OptionGroup var admin: AdminOptions

        func validate() throws {
            if self.scopes.isEmpty {
                throw ValidationError("Give the key at least one --scope.")
            }
        }

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            var members: [String: JSONValue] = ["scopes": .array(self.scopes.map(JSONValue.string))]
            members["name"] = self.name.map(JSONValue.string)
            members["expires_at"] = self.expiresAt.map { .string($0.utc) }
            if !self.topicPrefixes.isEmpty {
                members["topic_prefixes"] = .array(self.topicPrefixes.map(JSONValue.string))
            }
            if let file = self.keyFile {
                let key = try InputFile.readSecret(file).revealed
                guard APIKey(key) != nil else {
                    throw CommandFailure(
                        "\(InputFile.name(file)) holds no key of the gateway's form, fgw_…, or a mistyped one"
                    )
                }
                members["key"] = .string(key)
            }
            let body = try JSONValue.object(members).encoded()
            let answer: JSONValue
            do {
                answer = try await client.call(.post, ["tenants", self.tenant.name, "keys"], body: body)
            } catch {
                // What is imported can be imported again.
                throw self.keyFile == nil ? KeyCommand.doubting(error, tenant: self.tenant.name) : error
            }
            guard self.keyFile == nil else {
                var output = try CommandOutput.object(answer, columns: KeyCommand.columns, json: self.wantsJSON)
                output.remark = "the key is the tenant's"
                try print(output)
                return
            }
            try print(KeyCommand.once(answer, tenant: self.tenant.name, json: self.wantsJSON))
        }
    }

    /// `key list`.
    struct List: AdminVerb {
        static let configuration = CommandConfiguration(abstract: "List a tenant's keys, without their secrets.")

        @Argument(help: "The tenant.") var tenant: TenantArgument
        @OptionGroup var admin: AdminOptions
        @OptionGroup var list: ListOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let path = ["tenants", self.tenant.name, "keys"]
            let keys = try await client.list(path, member: "keys", limit: self.list.limit)
            try print(.list(keys, member: "keys", columns: KeyCommand.columns, json: self.wantsJSON))
        }
    }

    /// `key rotate`.
    struct Rotate: AdminVerb {
        static let configuration = CommandConfiguration(
            abstract: "Replace a key and print the new one, this once.",
            discussion: "The old key works for the overlap, so that services can be changed one after another."
        )

        @Argument(help: "The tenant.") var tenant: TenantArgument
        @Argument(help: "The key's id.") var id: String
        @Option(name: .long, help: "How long the old key still works, such as 0s, 15m, 24h or 7d.")
        var overlap = DurationArgument(seconds: 86_400)
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let body = try JSONValue.object(["overlap_s": .integer(self.overlap.seconds)]).encoded()
            let path = ["tenants", self.tenant.name, "keys", self.id, "rotate"]
            let answer: JSONValue
            do {
                answer = try await client.call(.post, path, body: body)
            } catch {
                throw KeyCommand.doubting(error, tenant: self.tenant.name)
            }
            try print(KeyCommand.once(answer, tenant: self.tenant.name, json: self.wantsJSON))
        }
    }

    /// `key revoke`.
    struct Revoke: AdminVerb {
        static let configuration = CommandConfiguration(abstract: "End a key at once.")

        @Argument(help: "The tenant.") var tenant: TenantArgument
        @Argument(help: "The key's id.") var id: String
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let answer = try await client.call(.delete, ["tenants", self.tenant.name, "keys", self.id])
            let members: [String: JSONValue] = ["id": .string(self.id), "revoked": .bool(true)]
            try print(.done("key \(self.id) revoked", answer, members: members, json: self.wantsJSON))
        }
    }

    /// Why no key came, with what to do where one may have been made all the same.
    private static func doubting(_ error: any Error, tenant: String) -> any Error {
        APIError.doubting(
            error,
            "Whether a key was made is not known: if fcm-gateway key list \(tenant) shows one more, revoke it and make "
                + "another, since nobody has it."
        )
    }

    /// What to do about a key that was made and that nobody has.
    static func adviceIfLost(_ id: String, tenant: String) -> String {
        "The key \(id) of tenant \(tenant) was made, and nobody has it: revoke it "
            + "(fcm-gateway key revoke \(tenant) \(id)) and make another"
    }

    /// A new key: the secret on standard output, so that `KEY=$(…)` takes it, the rest beside it.
    private static func once(_ answer: JSONValue, tenant: String, json: Bool) throws -> CommandOutput {
        guard let key = answer["key"]?.text else {
            throw CommandFailure("the gateway's answer holds no key")
        }
        let details = TextTable(object: answer, columns: Self.columns).text
        var output =
            json
            ? CommandOutput(try answer.prettyText())
            : CommandOutput(
                JSONValue.printable(key),
                remark: "\(details)\nThis is the only time the key is shown."
            )
        output.adviceIfLost = Self.adviceIfLost(answer["id"]?.text ?? "", tenant: tenant)
        return output
    }
}
