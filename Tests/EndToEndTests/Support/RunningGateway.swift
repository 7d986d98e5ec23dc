import AsyncHTTPClient
import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

/// A serving gateway in another process.
struct RunningGateway: Sendable {
    /// The admin token of gateways that tests start by `serve`.
    static let testAdminToken = "admin-token-of-the-tests-0123456789"

    let process: ChildProcess
    /// The data listener's address.
    let address: String
    let adminAddress: String
    let adminToken: String

    var port: Int { Self.port(of: self.address) }
    var adminPort: Int { Self.port(of: self.adminAddress) }

    private static func port(of address: String) -> Int { Int(address.split(separator: ":").last ?? "") ?? 0 }

    // MARK: Starting

    /// A master key of 32 equal bytes, in base64.
    static func masterKey(_ byte: UInt8 = 7) -> String { Data(repeating: byte, count: 32).base64EncodedString() }

    /// The variables that `serve` requires, with ports that the system chooses.
    static func environment(dataDirectory: String, adminToken: String = Self.testAdminToken) -> [String: String] {
        [
            "GATEWAY_DATA_DIR": dataDirectory,
            "GATEWAY_MASTER_KEY": Self.masterKey(),
            "GATEWAY_ADMIN_TOKEN": adminToken,
            "GATEWAY_HTTP_HOST": "127.0.0.1",
            "GATEWAY_HTTP_PORT": "0",
            "GATEWAY_HTTP_DRAIN_GRACE_MS": "0",
            "GATEWAY_ADMIN_PORT": "0",
            // Long timeouts, because the machine may be busy with other tests.
            "GATEWAY_HTTP_MAX_LAG_MS": "60000",
            "GATEWAY_HTTP_HEAD_TIMEOUT_MS": "60000",
            "GATEWAY_HTTP_BODY_TIMEOUT_MS": "600000",
            "GATEWAY_HTTP_WRITE_STALL_TIMEOUT_MS": "600000",
            "GATEWAY_HTTP_SHUTDOWN_TIMEOUT_MS": "600000",
            "GATEWAY_ADMIN_HEAD_TIMEOUT_MS": "60000",
            "GATEWAY_ADMIN_BODY_TIMEOUT_MS": "600000",
            "GATEWAY_ADMIN_WRITE_STALL_TIMEOUT_MS": "600000",
            "GATEWAY_UPSTREAM_CONNECT_TIMEOUT_MS": "60000",
            "GATEWAY_UPSTREAM_TIMEOUT_MS": "120000",
            "GATEWAY_UPSTREAM_DEADLINE_MS": "120000",
            "GATEWAY_AUDIT_COMMIT_TIMEOUT_MS": "60000",
            "GATEWAY_AUDIT_SPOOL_AFTER_MS": "60000",
        ]
    }

    /// Runs a body with a gateway started by `serve`. The scheme is the data listener's; the admin listener uses plain
    /// HTTP. Without a number of descriptors the gateway has the tests' limit.
    static func serving<Result>(
        _ environment: [String: String],
        configuration: String? = nil,
        descriptors: Int? = nil,
        scheme: String = "http",
        _ body: (RunningGateway) async throws -> Result
    ) async throws -> Result {
        var program = try Program.gateway()
        var arguments = ["serve"] + (configuration.map { ["--config", $0] } ?? [])
        if let descriptors {
            // The shell becomes the gateway.
            arguments = ["-c", #"ulimit -n \#(descriptors) && exec "$0" "$@""#, program.path] + arguments
            program = URL(filePath: "/bin/sh")
        }
        return try await ChildProcess.with(program, arguments, environment: environment) { process in
            let ports = try await self.ports(process)
            let gateway = RunningGateway(
                process: process,
                address: "\(scheme)://127.0.0.1:\(ports.data)",
                adminAddress: "http://127.0.0.1:\(ports.admin)",
                adminToken: environment["GATEWAY_ADMIN_TOKEN"] ?? ""
            )
            try await gateway.waitUntilReady()
            return try await body(gateway)
        }
    }

    /// The ports of both listeners, once the log has them.
    static func ports(_ process: ChildProcess) async throws -> (data: String, admin: String) {
        try await process.errors.first { text in
            text.firstMatch(of: #/"message":"Serving\.".*"admin_listener":".*:(\d+)","data_listener":".*:(\d+)"/#)
                .map { (data: String($0.2), admin: String($0.1)) }
        }
    }

    /// Polls `/readyz` until it answers 200.
    func waitUntilReady() async throws {
        try await wait { try await Reply.to("GET", "\(self.adminAddress)/readyz").status == 200 }
    }

    // MARK: Ending and reloading

    /// Sends SIGTERM and expects exit code 0.
    func stopInOrder(_ sourceLocation: SourceLocation = #_sourceLocation) async throws {
        self.process.signal(SIGTERM)
        #expect(try await self.process.end() == .code(0), sourceLocation: sourceLocation)
    }

    /// Sends SIGKILL and waits for the end.
    func kill(_ sourceLocation: SourceLocation = #_sourceLocation) async throws {
        self.process.signal(SIGKILL)
        #expect(try await self.process.end() == .signal(SIGKILL), sourceLocation: sourceLocation)
    }

    /// Sends SIGHUP and waits until the log has the results of `count` reloads.
    func reload(expecting count: Int) async throws {
        self.process.signal(SIGHUP)
        _ = try await self.process.errors.first { text -> Bool? in
            let ends = text.matches(of: #/"message":"The configuration was (not )?reloaded/#)
            return ends.count >= count ? true : nil
        }
    }

    // MARK: Calls

    /// Calls the data listener with a tenant's key, in the legacy form on legacy paths.
    func ask(
        _ method: String,
        _ path: String,
        key: String,
        _ body: String? = nil,
        headers: [String: String] = [:],
        by client: HTTPClient? = nil
    ) async throws -> Reply {
        let isLegacy = path.hasPrefix("/fcm/") || path.hasPrefix("/iid/")
        let own = ["Authorization": (isLegacy ? "key=" : "Bearer ") + key, "Content-Type": "application/json"]
        let all = own.merging(headers) { $1 }
        return try await Reply.to(method, self.address + path, headers: all, body: body, by: client)
    }

    func send(
        _ body: String,
        tenant: String = "demo",
        key: String,
        headers: [String: String] = [:]
    ) async throws -> Reply {
        try await self.ask("POST", "/v1/tenants/\(tenant)/messages", key: key, body, headers: headers)
    }

    /// Calls the admin API, below `/admin/v1/`.
    func admin(_ method: String, _ path: String, _ body: String? = nil) async throws -> Reply {
        try await Reply.to(
            method,
            "\(self.adminAddress)/admin/v1/\(path)",
            headers: ["Authorization": "Bearer \(self.adminToken)", "Content-Type": "application/json"],
            body: body
        )
    }

    /// The variables that let verbs call the admin listener.
    var adminEnvironment: [String: String] {
        ["GATEWAY_ADMIN_URL": self.adminAddress, "GATEWAY_ADMIN_TOKEN": self.adminToken]
    }

    func metrics() async throws -> String { try await Reply.to("GET", "\(self.adminAddress)/metrics").text }

    /// A gauge's or counter's value, by its name with its labels.
    func metric(_ name: String) async throws -> String? {
        try await self.metrics().split(separator: "\n").first { $0.hasPrefix("\(name) ") }
            .map { String($0.dropFirst(name.count + 1)) }
    }

    /// The number of requests and connections that the servers refused, for any reason.
    func rejections() async throws -> Int {
        try await self.metrics().split(separator: "\n")
            .filter { $0.hasPrefix("fcmgw_http_rejected_total{") }
            .compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
            .reduce(0, +)
    }

    // MARK: The audit

    /// All matching audit records, newest first. Without an action, records of reading the audit are left out.
    func audit(_ query: String = "") async throws -> [JSON] {
        var records: [JSON] = []
        var cursor = ""
        while true {
            let reply = try await self.admin("GET", "audit?limit=500\(query)\(cursor)")
            guard reply.status == 200 else { throw Emulator.Refused(reply: reply.text) }
            records += reply.json["records"]?.elements ?? []
            guard let next = reply.json["next_cursor"]?.text else {
                return query.contains("action=") ? records : records.filter { $0["action"]?.text != "audit.list" }
            }
            cursor = "&cursor=\(next)"
        }
    }

    /// Waits for the audit record of an answer's message; nil if the answer has no message.
    func auditRecord(of answer: JSON) async throws -> JSON? {
        guard let messageID = answer["id"]?.text else { return nil }
        return try await eventually { try await self.audit("&message=\(messageID)").first }
    }

    // MARK: Tenants

    /// Makes a tenant with a legacy credential, and a key that may send and read the audit.
    func makeTenant(_ name: String, serverKey: String, endpoint: String) async throws -> String {
        let tenant = #"{"display_name": "Test", "upstream": "legacy", "sender_id": "123456789012"}"#
        let made = try await self.admin("PUT", "tenants/\(name)", tenant)
        let credential: JSON = ["server_key": .string(serverKey), "endpoint": .string(endpoint)]
        let stored = try await self.admin("PUT", "tenants/\(name)/credentials/legacy", credential.encoded)
        guard stored.status == 200 else { throw Emulator.Refused(reply: made.text + stored.text) }
        return try await self.makeKey(name, ["messages:send", "audit:read"])
    }

    /// Makes a key of a tenant for some scopes.
    func makeKey(_ tenant: String, _ scopes: [String]) async throws -> String {
        let body: JSON = ["name": "test", "scopes": .array(scopes.map(JSON.string))]
        let created = try await self.admin("POST", "tenants/\(tenant)/keys", body.encoded)
        return try #require(created.json["key"]?.text, "\(created.text)")
    }

    /// Gives a tenant a service account and sets it to HTTP v1.
    func useV1(_ tenant: String, _ account: JSON, endpoint: String) async throws {
        let credential: JSON = ["service_account": account, "endpoint": .string(endpoint)]
        let stored = try await self.admin("PUT", "tenants/\(tenant)/credentials/v1", credential.encoded)
        let set = try await self.set(tenant, upstream: "v1")
        guard stored.status == 200, set.status == 200 else { throw Emulator.Refused(reply: stored.text + set.text) }
    }

    func set(_ tenant: String, upstream: String) async throws -> Reply {
        try await self.admin("PUT", "tenants/\(tenant)", #"{"display_name": "Test", "upstream": "\#(upstream)"}"#)
    }
}

extension PrivateDirectory {
    /// The variables of a gateway with its data in this directory. Settings replace variables; nil removes one.
    func environment(_ settings: [String: String?] = [:]) -> [String: String] {
        settings.reduce(into: RunningGateway.environment(dataDirectory: self.path("data"))) { $0[$1.key] = $1.value }
    }

    /// Writes a listener's certificate and the authority of its clients, and returns the settings that name the files.
    func tls(
        _ listener: String,
        _ identity: TestIdentity,
        clients authority: TestAuthority
    ) throws -> [String: String?] {
        let certificate = try self.write(identity.certificate, to: "s.crt")
        let key = try self.write(identity.privateKey, to: "s.key")
        let authorities = try self.write(authority.certificate, to: "ca.crt")
        return [
            "GATEWAY_\(listener)_TLS_CERTIFICATE_FILE": certificate,
            "GATEWAY_\(listener)_TLS_PRIVATE_KEY_FILE": key, "GATEWAY_\(listener)_TLS_CLIENT_CA_FILE": authorities,
        ]
    }
}

/// A serving gateway, a fake FCM behind it, and a tenant that can send.
struct Site: Sendable {
    let gateway: RunningGateway
    let emulator: Emulator
    let directory: PrivateDirectory
    /// The gateway's variables, to start another in its place.
    let environment: [String: String]
    /// A key of the tenant `demo` that may read the audit and send, by the legacy protocol.
    let key: String

    var data: String { self.directory.path("data") }

    /// Runs a body with a gateway that has some settings of its own.
    static func with<Result>(
        _ settings: [String: String] = [:],
        serverKey: String = "k",
        _ body: (Site) async throws -> Result
    ) async throws -> Result {
        try await PrivateDirectory.with { directory in
            try await Emulator.with { emulator in
                let tokenHosts = ["GATEWAY_UPSTREAM_ALLOWED_TOKEN_HOSTS": emulator.host]
                let environment = directory.environment(tokenHosts).merging(settings) { $1 }
                return try await RunningGateway.serving(environment) { gateway in
                    let key = try await gateway.makeTenant("demo", serverKey: serverKey, endpoint: emulator.address)
                    return try await body(
                        Site(
                            gateway: gateway,
                            emulator: emulator,
                            directory: directory,
                            environment: environment,
                            key: key
                        )
                    )
                }
            }
        }
    }

    func send(_ body: String, headers: [String: String] = [:]) async throws -> Reply {
        try await self.gateway.send(body, key: self.key, headers: headers)
    }
}

/// Polls until there is a result or the suite's time limit is over. Each poll is an exchange with another process, so
/// it doesn't spin.
func eventually<Result>(_ look: () async throws -> Result?) async throws -> Result {
    while true {
        try Task.checkCancellation()
        if let result = try await look() { return result }
        await Task.yield()
    }
}

/// Polls until a condition is met.
func wait(until isMet: () async throws -> Bool) async throws {
    try await eventually { try await isMet() ? () : nil }
}
