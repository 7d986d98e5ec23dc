import ArgumentParser
import FCMModel
import Foundation
import GatewayCore
import GatewayService
import GatewayUpstream
import NIOCore
import StrictJSON

/// `init`: creates everything for a gateway's first start.
struct InitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Make a gateway's configuration, secrets and first tenant.",
        discussion: """
            Creates gateway.yaml, a master key and an admin token in the configuration directory, and the data \
            directory. With a service account, also creates the first tenant, which sends by HTTP v1, and an API key \
            for the tenant's services. Prints the created files, what to back up, and the next steps.

            Changes nothing that exists: the command refuses if one of its files exists, and removes its own files if \
            it fails. Root's directories are /etc/fcm-gateway and /var/lib/fcm-gateway; the user fcm-gateway owns the \
            data directory. Another user's directory is ./fcm-gateway.

            Example:
              fcm-gateway init --service-account shop.json --test-certificate localhost

            Exit codes: 0 done; 1 refused or failed, and nothing was left behind.
            """
    )

    @Option(
        name: .long,
        help: "The directory for the configuration and the secrets (default: /etc/fcm-gateway for root).",
        completion: .directory
    )
    var configDir: String?
    @Option(
        name: .long,
        help: "The gateway's data directory (default: /var/lib/fcm-gateway for root).",
        completion: .directory
    )
    var dataDir: String?
    @Option(name: .long, help: "For root: the user who runs the gateway.") var user = "fcm-gateway"
    @Option(name: .long, help: "The data listener's certificate, a PEM file with its chain.", completion: .file())
    var certificate: String?
    @Option(name: .long, help: "The private key of --certificate, a PEM file.", completion: .file())
    var privateKey: String?
    @Option(name: .long, help: "Make a test certificate for this host name.")
    var testCertificate: String?
    @Option(
        name: .long,
        help: "The first tenant's service account, a JSON file, or - for standard input.",
        completion: .file(extensions: ["json"])
    )
    var serviceAccount: String?
    @Option(name: .long, help: "The first tenant's name (default: the account's project).") var tenant: TenantID?
    @Option(name: .customLong("key"), help: "A name for the first tenant's API key.") var keyName = "default"
    @Option(name: .long, help: "The server to send to instead of Google's, such as an emulator.") var fcmUrl: BaseURL?
    @Option(name: .long, help: "The authorities of --fcm-url's certificate, a PEM file.", completion: .file())
    var fcmCaFile: String?
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (self.certificate == nil) == (self.privateKey == nil) else {
            throw ValidationError("Give --certificate and --private-key together.")
        }
        if self.certificate != nil, self.testCertificate != nil {
            throw ValidationError("Give --certificate or --test-certificate, not both.")
        }
        if let name = self.testCertificate, !TestCertificate.isHostName(name) {
            throw ValidationError("--test-certificate takes a host name, such as localhost.")
        }
        if self.tenant != nil, self.serviceAccount == nil {
            throw ValidationError("--tenant needs --service-account.")
        }
        if self.fcmCaFile != nil, self.fcmUrl == nil {
            throw ValidationError("--fcm-ca-file needs --fcm-url.")
        }
    }

    func run() async throws {
        try await FailureReport.reporting {
            let account = try self.serviceAccount.map { Array(try InputFile.read($0).readableBytesView) }
            let layout = self.layout
            var files = SetupFiles(owner: try self.owner)
            try layout.requireRoom()
            do {
                let made = try await self.make(layout, account: account, &files)
                try made.output(json: self.output.isJSON).write()
            } catch {
                files.removeAll()
                throw error
            }
        }
    }

    private var layout: Layout {
        func absolute(_ path: String) -> String { URL(fileURLWithPath: path).standardizedFileURL.path }
        let isRoot = FileFacts.user == 0
        let configuration = absolute(self.configDir ?? (isRoot ? "/etc/fcm-gateway" : "fcm-gateway"))
        let data = self.dataDir ?? (isRoot && self.configDir == nil ? "/var/lib/fcm-gateway" : "\(configuration)/data")
        return Layout(directory: configuration, dataDirectory: absolute(data))
    }

    /// The account that owns the data directory; `nil` for the present user.
    private var owner: SetupFiles.Account? {
        get throws {
            guard FileFacts.user == 0 else { return nil }
            guard let account = SetupFiles.Account(named: self.user) else {
                throw CommandFailure(
                    "there is no user \(self.user) on this machine: \"make install\" creates it, or give another --user"
                )
            }
            return account
        }
    }

    private func make(
        _ layout: Layout,
        account: [UInt8]?,
        _ files: inout SetupFiles
    ) async throws -> MadeGateway {
        var made = MadeGateway(layout: layout, user: FileFacts.user == 0 && self.user != "root" ? self.user : nil)
        try files.makeDirectory(layout.directory, mode: 0o755)
        made.tls = try self.tls(layout, &files)
        try files.write(
            ConfigurationText(layout: layout, tls: made.tls, fcm: self.fcmUrl?.text, fcmCAFile: self.fcmCaFile).text,
            to: layout.configuration,
            mode: 0o644
        )
        let configuration = try ConfigurationInput(file: layout.configuration, environment: [:]).configuration()
        _ = try ListenerCertificates(configuration)
        let masterKey = Secret(randomBytes: MasterKey.byteCount).revealBytes()
        let adminToken = Data(Secret(randomBytes: 24).revealBytes()).base64EncodedString()
        // With systemd, the service gets copies of root's secrets; without systemd, the gateway reads them itself.
        for (path, secret) in [
            (layout.masterKey, Data(masterKey).base64EncodedString()), (layout.adminToken, adminToken),
        ] {
            try files.write(secret + "\n", to: path, mode: 0o400, isOwners: !layout.isUnits)
        }
        try files.makeDataDirectory(layout.dataDirectory)
        guard let account else { return made }

        let tenant = try FirstTenant(account: account, name: self.tenant, keyName: self.keyName, in: configuration)
        let secrets = ServingSecrets(
            masterKey: Redacted(masterKey),
            adminToken: Redacted(adminToken)
        )
        let key = try await tenant.make(in: configuration, secrets: secrets)
        try files.giveAway(layout.dataDirectory)
        try files.makeDirectory(layout.keyDirectory, mode: 0o700)
        try files.write(key.secret.revealText() + "\n", to: layout.key(of: tenant.id), mode: 0o400)
        made.tenant = tenant.id
        return made
    }

    private func tls(_ layout: Layout, _ files: inout SetupFiles) throws -> MadeGateway.TLS? {
        if let certificate = self.certificate, let privateKey = self.privateKey {
            let absolute = { URL(fileURLWithPath: $0).standardizedFileURL.path }
            return MadeGateway.TLS(certificate: absolute(certificate), privateKey: absolute(privateKey), testName: nil)
        }
        guard let name = self.testCertificate else { return nil }
        let made = try TestCertificate(for: name, at: Date())
        try files.makeDirectory(layout.tlsDirectory, mode: 0o755)
        let tls = MadeGateway.TLS(
            certificate: "\(layout.tlsDirectory)/server.crt",
            privateKey: "\(layout.tlsDirectory)/server.key",
            testName: name
        )
        try files.write(made.certificate, to: tls.certificate, mode: 0o644)
        // The gateway reads the key itself, at reloads too.
        try files.write(made.privateKey, to: tls.privateKey, mode: 0o400, isOwners: true)
        return tls
    }
}

extension InitCommand {
    /// The places of a gateway's files.
    struct Layout {
        let directory: String
        let dataDirectory: String

        var configuration: String { "\(self.directory)/gateway.yaml" }
        var masterKey: String { "\(self.directory)/master.key" }
        var adminToken: String { "\(self.directory)/admin.token" }
        var tlsDirectory: String { "\(self.directory)/tls" }
        var keyDirectory: String { "\(self.directory)/keys" }

        /// True if this gateway is run by the systemd unit that `make install` and the packages install.
        var isUnits: Bool {
            let places = ["/usr/lib/systemd/system", "/lib/systemd/system", "/etc/systemd/system"]
            return self.directory == "/etc/fcm-gateway"
                && places.contains { FileManager.default.fileExists(atPath: "\($0)/fcm-gateway.service") }
        }

        func key(of tenant: TenantID) -> String { "\(self.keyDirectory)/\(tenant.text).key" }

        /// Throws if a gateway may exist here.
        func requireRoom() throws(CommandFailure) {
            let files = FileManager.default
            for path in [self.configuration, self.masterKey, self.adminToken, self.tlsDirectory, self.keyDirectory]
            where files.fileExists(atPath: path) {
                throw CommandFailure(
                    "\(path) exists already, and init changes no existing file; "
                        + "name another directory with --config-dir"
                )
            }
            if let found = try? files.contentsOfDirectory(atPath: self.dataDirectory), let first = found.min() {
                throw CommandFailure(
                    "\(self.dataDirectory) holds \(first) already, and init changes no existing file; "
                        + "name another directory with --data-dir"
                )
            }
        }
    }
}

/// The result of `init`, in words for people or as an object for programs.
struct MadeGateway {
    struct TLS {
        let certificate: String
        let privateKey: String
        /// The host name of a test certificate, which clients must be configured to trust.
        let testName: String?
    }

    let layout: InitCommand.Layout
    /// The user who will run the gateway; `nil` for the present user.
    let user: String?
    var tls: TLS?
    var tenant: TenantID?

    func output(json: Bool) -> CommandOutput {
        guard !json else {
            return .json { writer in
                writer.member("config", self.layout.configuration)
                writer.member("master_key_file", self.layout.masterKey)
                writer.member("admin_token_file", self.layout.adminToken)
                writer.member("data_dir", self.layout.dataDirectory)
                writer.member("certificate_file", ifPresent: self.tls?.certificate)
                writer.member("tenant", ifPresent: self.tenant?.text)
                writer.member("key_file", ifPresent: self.tenant.map(self.layout.key))
                writer.member("url", self.url)
            }
        }
        return CommandOutput(
            """
            Made:
            \(Self.aligned(self.made))

            Back up, in two places:
            \(Self.aligned(self.backups))

            Next:

            \(self.next.map { "  " + $0.replacing("\n", with: "\n  ") }.joined(separator: "\n"))
            """
        )
    }

    private var made: [(String, String)] {
        var made = [
            (self.layout.configuration, "the configuration"),
            (self.layout.masterKey, "the master key, which seals all secrets in the store"),
            (self.layout.adminToken, "the operators' token"),
        ]
        if let tls = self.tls, tls.testName != nil {
            made.append((tls.certificate, "a test certificate, valid for a year; clients must trust it"))
            made.append((tls.privateKey, "the test certificate's private key"))
        }
        made.append((self.layout.dataDirectory, "the data directory, with the store and the audit"))
        if let tenant = self.tenant {
            made.append((self.layout.key(of: tenant), "the API key of tenant \(tenant), for its services"))
        }
        return made
    }

    private var backups: [(String, String)] {
        [
            (self.layout.masterKey, "apart from the store's backups, which can't be read without the key"),
            (self.layout.dataDirectory, "see \"Backup and restore\" in docs/operations/one-gateway.md"),
        ]
    }

    private var url: String { "\(self.tls == nil ? "http" : "https")://\(self.tls?.testName ?? "localhost"):8080" }

    private var next: [String] {
        let serve = """
            GATEWAY_MASTER_KEY_FILE=\(Self.quoted(self.layout.masterKey)) \\
              GATEWAY_ADMIN_TOKEN_FILE=\(Self.quoted(self.layout.adminToken)) \\
              fcm-gateway serve --config \(Self.quoted(self.layout.configuration))
            """
        let start =
            if self.layout.isUnits {
                "systemctl enable --now fcm-gateway"
            } else if let user = self.user {
                "runuser -u \(user) -- env \(serve)"
            } else {
                serve
            }
        let token = "export GATEWAY_ADMIN_TOKEN_FILE=\(Self.quoted(self.layout.adminToken))"
        guard let tenant = self.tenant else {
            return [
                start, token,
                "fcm-gateway tenant put shop --display-name Shop",
                "fcm-gateway credential put shop v1 --service-account-file service-account.json",
                "fcm-gateway key create shop --scope messages:send",
            ]
        }
        let trust = self.tls.flatMap { $0.testName == nil ? nil : "--cacert \(Self.quoted($0.certificate)) " } ?? ""
        return [
            start, token,
            "fcm-gateway credential check \(tenant)",
            """
            curl -sS \(trust)\(self.url)/v1/tenants/\(tenant)/messages \\
              -H "Authorization: Bearer $(cat \(Self.quoted(self.layout.key(of: tenant))))" \\
              -H 'Content-Type: application/json' \\
              -d '{"token": "DEVICE", "notification": {"title": "Hello", "body": "from fcm-gateway"}}'
            """,
        ]
    }

    private static func aligned(_ rows: [(String, String)]) -> String {
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { "  \($0.padding(toLength: width, withPad: " ", startingAt: 0))  \($1)" }
            .joined(separator: "\n")
    }

    /// Returns a path quoted for a shell.
    private static func quoted(_ path: String) -> String {
        let isPlain = path.utf8.allSatisfy { byte in
            byte.isLowerAlphanumeric || (0x41...0x5A).contains(byte) || "/._-".utf8.contains(byte)
        }
        return isPlain ? path : "'\(path.replacing("'", with: "'\\''"))'"
    }
}

/// The tenant that `init` creates in a new store, with a service account and an API key.
struct FirstTenant {
    private static let origin = RequestOrigin(method: "", requestID: "init")

    let id: TenantID
    private let credential: V1Credential
    private let keyName: String

    /// Checks an account. Throws `CommandFailure` if a gateway with this configuration would refuse the account.
    init(
        account json: [UInt8],
        name: TenantID?,
        keyName: String,
        in configuration: GatewayConfiguration
    ) throws(CommandFailure) {
        do {
            let hosts = configuration.upstream.tokenHosts
            self.credential = try V1Credential(serviceAccount: json, endpoint: nil, allowing: hosts)
        } catch {
            throw CommandFailure(
                "the service account can't be used: \(error.member.map { "\($0): " } ?? "")\(error.message)"
            )
        }
        guard let id = name ?? TenantID(self.credential.projectID) else {
            throw CommandFailure(
                "the project \(self.credential.projectID) can't be a tenant's name; give a name with --tenant"
            )
        }
        self.id = id
        self.keyName = keyName
    }

    /// Creates the tenant in a configuration's store, and returns the tenant's key. No gateway may serve the store.
    func make(in configuration: GatewayConfiguration, secrets: ServingSecrets) async throws -> APIKey {
        try await Gateway.administering(configuration, secrets: secrets) { try await self.make(by: $0) }
    }

    private func make(by administration: Administration) async throws -> APIKey {
        let draft = Tenant.Draft(displayName: self.id.text, upstream: .v1, projectID: self.credential.projectID)
        _ = try await administration.put(draft, id: self.id, origin: Self.origin)
        _ = try await administration.put(self.credential, tenant: self.id, origin: Self.origin)
        let key = APIKey.Draft(name: self.keyName, scopes: Set(Scope.allCases))
        return try await administration.createKey(key, tenant: self.id, origin: Self.origin).0
    }
}
