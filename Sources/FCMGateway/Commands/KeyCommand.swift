import ArgumentParser
import GatewayCore
import GatewayService
import NIOCore
import StrictJSON

/// `key`: manages the keys of tenants' services.
struct KeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "Manage a tenant's API keys.",
        subcommands: [Create.self, List.self, Rotate.self, Revoke.self, Generate.self]
    )

    static let columns = ["id", "name", "scopes", "topic_prefixes", "expires_at", "created_at", "revoked_at"]

    struct Create: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "create",
            abstract: "Create a key and print it once.",
            discussion: """
                Standard output receives only the key, standard error its details.

                With --key-file, the gateway imports an existing key and prints no key. Gateways with separate stores \
                can thus accept the same key. Importing a key again changes nothing. To create a key for import: \
                fcm-gateway key generate

                Example:
                  fcm-gateway key create shop --name orders --scope messages:send --expires-in 90d
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @Option(
            name: .customLong("scope"),
            help: "A permission of the key; may be repeated.",
            completion: .list(Scope.allCases.map(\.rawValue))
        )
        var scopes: [Scope] = []
        @Option(name: .long, help: "A name for people.") var name: String?
        @Option(name: .customLong("topic-prefix"), help: "Limits the key to topics with this prefix; may be repeated.")
        var topicPrefixes: [String] = []
        @Option(name: .long, help: "The time when the key expires, such as 2026-01-31T12:00:00Z (default: never).")
        var expiresAt: Timestamp?
        @Option(name: .long, help: "The key's lifetime, such as 90d; instead of --expires-at.")
        var expiresIn: DurationArgument?
        @Option(
            name: .long,
            help: "The file with the key to import, or - for standard input (default: create a new key).",
            completion: .file()
        )
        var keyFile: String?
        @OptionGroup var admin: AdminOptions

        func validate() throws {
            if self.scopes.isEmpty { throw ValidationError("Give the key at least one --scope.") }
            if self.expiresAt != nil, self.expiresIn != nil {
                throw ValidationError("Give --expires-at or --expires-in, not both.")
            }
        }

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let end = self.expiresIn.map { SystemWallClock().now().advanced(by: .seconds($0.seconds)) }
            let draft = APIKey.Draft(
                name: self.name ?? "",
                scopes: Set(self.scopes),
                topicPrefixes: self.topicPrefixes,
                expiresAt: self.expiresAt ?? end
            )
            let imported = try self.keyFile.map { try Self.key(in: $0) }
            let body = KeyCommand.body(draft, imported: imported)
            let answer: JSONValue?
            do {
                answer = try await client.call(.post, ["tenants", self.tenant.text, "keys"], body: body)
            } catch {
                // Repeating an import is harmless.
                throw imported == nil ? KeyCommand.doubting(error, tenant: self.tenant) : error
            }
            guard imported == nil else {
                var output = CommandOutput.object(answer, columns: KeyCommand.columns, json: self.wantsJSON)
                output.remark = "the tenant has the key"
                try print(output)
                return
            }
            try print(KeyCommand.once(answer, tenant: self.tenant, json: self.wantsJSON))
        }

        private static func key(in file: String) throws(CommandFailure) -> Redacted<String> {
            let text = try InputFile.readSecret(file)
            guard APIKey(text.revealed) != nil else {
                throw CommandFailure(
                    "\(InputFile.name(file)) holds no valid key of the form fgw_… (mistyped?)"
                )
            }
            return text
        }
    }

    struct List: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List a tenant's keys, without their secrets.",
            discussion: """
                Example:
                  fcm-gateway key list shop
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @OptionGroup var admin: AdminOptions
        @OptionGroup var list: ListOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let path = ["tenants", self.tenant.text, "keys"]
            let keys = try await client.list(path, member: "keys", limit: self.list.limit)
            try print(.list(keys, member: "keys", columns: KeyCommand.columns, json: self.wantsJSON))
        }
    }

    struct Rotate: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "rotate",
            abstract: "Replace a key and print the new key once.",
            discussion: """
                The old key works until the overlap ends, so that you can change services one after another. Give the \
                key's id, or its name if the tenant has no other key of that name in use.

                Example:
                  fcm-gateway key rotate shop orders --overlap 7d
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @Argument(help: "The key's id or name.") var key: String
        @Option(name: .long, help: "The time for which the old key still works, such as 0s, 15m, 24h or 7d.")
        var overlap = DurationArgument(seconds: 86_400)
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let body = JSONWriter.object { $0.member("overlap_s", self.overlap.seconds) }
            let path = ["tenants", self.tenant.text, "keys", try await self.id(client), "rotate"]
            let answer: JSONValue?
            do {
                answer = try await client.call(.post, path, body: body)
            } catch {
                throw KeyCommand.doubting(error, tenant: self.tenant)
            }
            try print(KeyCommand.once(answer, tenant: self.tenant, json: self.wantsJSON))
        }

        /// Returns the id of the key with the argument's name, or the argument itself if no key has that name.
        private func id(_ client: AdminClient) async throws -> String {
            let keys = try await client.list(["tenants", self.tenant.text, "keys"], member: "keys")
            if keys.contains(where: { $0.text("id") == self.key }) { return self.key }
            let now = SystemWallClock().now()
            let named = keys.filter { key in
                let end = key.text("expires_at").flatMap { Timestamp(rfc3339: $0) }
                return key.text("name") == self.key && key.text("revoked_at") == nil && end.map { $0 > now } != false
            }
            let ids = named.compactMap { $0.text("id") }
            guard ids.count < 2 else {
                throw CommandFailure(
                    "several keys are named \(self.key): give an id, one of \(ids.joined(separator: ", "))"
                )
            }
            return ids.first ?? self.key
        }
    }

    struct Revoke: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "revoke",
            abstract: "Revoke a key immediately.",
            discussion: """
                Example:
                  fcm-gateway key revoke shop cfbee4wzpt
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @Argument(help: "The key's id.") var id: String
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            _ = try await client.call(.delete, ["tenants", self.tenant.text, "keys", self.id])
            let output = CommandOutput.done("key \(self.id) revoked", json: self.wantsJSON) { writer in
                writer.member("id", self.id)
                writer.member("revoked", true)
            }
            try print(output)
        }
    }

    /// `key generate`: creates a key without a gateway.
    struct Generate: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "generate",
            abstract: "Create a key without a gateway, and print it.",
            discussion: """
                Keep the key in a file that only you can read. Gateways accept the key after fcm-gateway key create \
                --key-file, or after fcm-gateway tenant apply with a file whose key_file names it.

                Example:
                  (umask 077; fcm-gateway key generate > shared.key)
                """
        )

        @OptionGroup var output: OutputOptions

        func run() throws {
            let key = APIKey.generate()
            let text = key.secret.revealText()
            var output = CommandOutput(text)
            if self.output.isJSON {
                output = .json { writer in
                    writer.member("id", key.id)
                    writer.member("key", text)
                }
            }
            output.adviceIfLost = "No gateway knows the key: create another"
            try output.write()
        }
    }

    // MARK: Keys of the admin API

    /// Returns the admin API's body to create or import a key.
    static func body(_ draft: APIKey.Draft, imported: Redacted<String>?) -> ByteBuffer {
        JSONWriter.object { writer in
            writer.member("expires_at", ifPresent: draft.expiresAt?.rfc3339)
            writer.member("key", ifPresent: imported?.revealed)
            if !draft.name.isEmpty { writer.member("name", draft.name) }
            writer.member("scopes", draft.scopes.map(\.rawValue).sorted())
            if !draft.topicPrefixes.isEmpty { writer.member("topic_prefixes", draft.topicPrefixes) }
        }
    }

    /// Returns the failure of a creation, with advice in case the key was created nevertheless.
    private static func doubting(_ error: any Error, tenant: TenantID) -> any Error {
        APIError.doubting(
            error,
            "The key may have been created. If fcm-gateway key list \(tenant) shows a new key, revoke it and create "
                + "another, because its secret was never shown."
        )
    }

    /// Returns the advice for a key that was created but never shown.
    static func adviceIfLost(_ id: String, tenant: TenantID) -> String {
        "The key \(id) of tenant \(tenant) was created, but could not be shown: revoke the key "
            + "(fcm-gateway key revoke \(tenant) \(id)) and create a new one"
    }

    /// Returns the output for a new key. Only the secret goes to standard output, so that `KEY=$(…)` works.
    private static func once(_ answer: JSONValue?, tenant: TenantID, json: Bool) throws -> CommandOutput {
        guard let answer, let key = answer.text("key") else {
            throw CommandFailure("the gateway's answer holds no key")
        }
        var output = CommandOutput(answer.prettyText())
        if !json {
            let details = TextTable(object: answer, columns: Self.columns).text
            output = CommandOutput(key.printable, remark: "\(details)\nThis is the only time the key is shown.")
        }
        output.adviceIfLost = Self.adviceIfLost(answer.text("id") ?? "", tenant: tenant)
        return output
    }
}
