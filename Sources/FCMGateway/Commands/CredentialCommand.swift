import ArgumentParser
import GatewayCore
import GatewayService
import NIOCore
import StrictJSON

/// `credential`: manages the credentials that send a tenant's messages.
struct CredentialCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credential",
        abstract: "Manage a tenant's FCM credentials.",
        subcommands: [Put.self, Get.self, Check.self, Delete.self, CredentialRewrapCommand.self]
    )

    static let columns = ["kind", "fingerprint", "endpoint", "version", "created_at"]

    struct Put: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "put",
            abstract: "Store a tenant's credential; it can be replaced, never read back.",
            discussion: """
                The credential is read from a file or standard input, never from an argument.

                Without a key, a v1 credential is a file for Workload Identity Federation (--external-account-file) or \
                the machine's own identity (--metadata-server). Both need the tenant's project, and the gateway's \
                configuration must name the servers and folders that they use.

                Example:
                  fcm-gateway credential put shop v1 --service-account-file shop.json
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @Argument(help: "The credential's kind.") var kind: UpstreamKind
        @Option(
            name: .long,
            help: "For legacy: the file that holds the server key, or - for standard input.",
            completion: .file()
        )
        var serverKeyFile: String?
        @Option(
            name: .long,
            help: "For v1: the service account's JSON file, or - for standard input.",
            completion: .file(extensions: ["json"])
        )
        var serviceAccountFile: String?
        @Option(
            name: .long,
            help: "For v1: the JSON file of external account credentials, or - for standard input.",
            completion: .file(extensions: ["json"])
        )
        var externalAccountFile: String?
        @Flag(name: .long, help: "For v1: use the identity of the gateway's machine.") var metadataServer = false
        @Option(name: .long, help: "The project of the messages, for a credential without a key.") var projectID:
            String?
        @Option(name: .long, help: "Another server's address, such as an emulator's (default: FCM's).")
        var endpoint: BaseURL?
        @OptionGroup var admin: AdminOptions

        func validate() throws {
            let sources = [self.serviceAccountFile != nil, self.externalAccountFile != nil, self.metadataServer]
            let count = sources.count { $0 }
            switch self.kind {
            case .legacy:
                guard self.serverKeyFile != nil, count == 0 else {
                    throw ValidationError("A legacy credential needs --server-key-file, and only that.")
                }
            case .v1:
                guard self.serverKeyFile == nil, count == 1 else {
                    throw ValidationError(
                        "A v1 credential needs one of --service-account-file, --external-account-file and "
                            + "--metadata-server."
                    )
                }
            }
            guard (self.projectID != nil) == (self.externalAccountFile != nil || self.metadataServer) else {
                throw ValidationError("--project-id belongs to --external-account-file and --metadata-server.")
            }
        }

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let account = try self.serviceAccountFile.map { try Self.serviceAccount(in: $0) }
            let body = try CredentialCommand.body(
                serverKey: self.serverKeyFile.map { try InputFile.readSecret($0).revealed },
                serviceAccount: account,
                externalAccount: self.externalAccountFile.map { try InputFile.readJSON($0) },
                metadataServer: self.metadataServer,
                projectID: self.projectID,
                endpoint: self.endpoint?.text
            )
            let path = ["tenants", self.tenant.text, "credentials", self.kind.rawValue]
            var output = CommandOutput.object(
                try await client.call(.put, path, body: body),
                columns: CredentialCommand.columns,
                json: self.wantsJSON
            )
            let remarks = try await self.remarks(of: account?.text("project_id") ?? self.projectID, client)
            output.remark = (["credential stored"] + remarks).joined(separator: "\n")
            try print(output)
        }

        /// Gives a tenant without a project the account's project. Returns a remark on that, and warnings if messages
        /// would not use the credential.
        private func remarks(of project: String?, _ client: AdminClient) async throws -> [String] {
            let path = ["tenants", self.tenant.text]
            let tenant = try await client.get(path)
            var remarks: [String] = []
            if let project {
                if let own = tenant.text("project_id") {
                    if own != project {
                        remarks.append(
                            "warning: the account belongs to project \(project), but the tenant's project is \(own)"
                        )
                    }
                } else {
                    let body = JSONWriter.object { $0.member("project_id", project) }
                    _ = try await client.call(.patch, path, body: body)
                    remarks.append("the tenant's project is now \(project), from the account")
                }
            }
            if let upstream = tenant.text("upstream"), upstream != self.kind.rawValue {
                remarks.append(
                    "warning: the tenant's messages use \(upstream); to use the new credential: "
                        + "fcm-gateway tenant set \(self.tenant) --upstream \(self.kind.rawValue)"
                )
            }
            return remarks
        }

        private static func serviceAccount(in file: String) throws(CommandFailure) -> JSONValue {
            let content = try InputFile.readJSON(file)
            guard content["private_key"] != nil else {
                throw CommandFailure("\(file) is not a service account file: it has no private_key")
            }
            return content
        }
    }

    struct Get: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "get",
            abstract: "Show a credential's fingerprint and dates, never the credential.",
            discussion: """
                Example:
                  fcm-gateway credential get shop v1
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @Argument(help: "The credential's kind.") var kind: UpstreamKind = .legacy
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let path = ["tenants", self.tenant.text, "credentials", self.kind.rawValue]
            let answer = try await client.call(.get, path)
            try print(.object(answer, columns: CredentialCommand.columns, json: self.wantsJSON))
        }
    }

    struct Check: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Prove a tenant's credentials against FCM by a dry run, which reaches no device.",
            discussion: """
                The exit code is 1 unless the credential for the tenant's upstream is valid.

                Example:
                  fcm-gateway credential check shop
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            let answer = try await client.call(.post, ["tenants", self.tenant.text, "credentials", "check"])
            let checks = answer?.list("checks") ?? []
            let columns = ["kind", "in_use", "finding", "detail", "upstream_code"]
            let table = TextTable(columns: columns, objects: checks).styled
            try print(self.wantsJSON ? CommandOutput(answer?.prettyText() ?? "") : CommandOutput(table))
            guard checks.contains(where: { $0["in_use"]?.bool == true && $0.text("finding") == "valid" }) else {
                throw ExitCode.failure
            }
        }
    }

    struct Delete: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "delete",
            abstract: "Delete a tenant's credential for good.",
            discussion: """
                Example:
                  fcm-gateway credential delete shop legacy
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @Argument(help: "The credential's kind.") var kind: UpstreamKind
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            if !self.confirmation.yes {
                let tenant = try await client.get(["tenants", self.tenant.text])
                let use = tenant.text("upstream") == self.kind.rawValue ? ", which its messages use" : ""
                try self.confirmation.confirm("Delete the \(self.kind.rawValue) credential of \(self.tenant)\(use)?")
            }
            _ = try await client.call(.delete, ["tenants", self.tenant.text, "credentials", self.kind.rawValue])
            let output = CommandOutput.done("\(self.kind.rawValue) credential deleted", json: self.wantsJSON) {
                writer in
                writer.member("tenant", self.tenant.text)
                writer.member("kind", self.kind.rawValue)
                writer.member("deleted", true)
            }
            try print(output)
        }
    }

    static func body(
        serverKey: String? = nil,
        serviceAccount: JSONValue? = nil,
        externalAccount: JSONValue? = nil,
        metadataServer: Bool = false,
        projectID: String? = nil,
        endpoint: String?
    ) -> ByteBuffer {
        JSONWriter.object { writer in
            writer.member("endpoint", ifPresent: endpoint)
            writer.member("server_key", ifPresent: serverKey)
            writer.member("project_id", ifPresent: projectID)
            if metadataServer { writer.member("metadata_server", true) }
            for (name, account) in [("service_account", serviceAccount), ("external_account", externalAccount)] {
                guard let account else { continue }
                writer.key(name)
                writer.value(account)
            }
        }
    }
}
