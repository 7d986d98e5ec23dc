import Foundation
import GatewayCore
import GatewayStorage
import GatewayTestKit
import NIOSSL
import StrictJSON
import Testing

@testable import FCMGateway
@testable import GatewayService

struct DoctorChecksTests {
    /// The defaults, with four event loops.
    private static var configuration: GatewayConfiguration {
        var configuration = GatewayConfiguration()
        configuration.eventLoops = 4
        return configuration
    }

    @Test(
        "Descriptors are too few if any kind of connection gets fewer than configured",
        arguments: [
            (22_294, "22294 are enough for the configured connections"),
            (20_000, "20000 leave room for 14664 of the 16384 connections of http.maxConnections"),
            (
                1_024,
                """
                1024 leave room for 624 of the 16384 connections of http.maxConnections, 64 of the 256 connections of \
                admin.maxConnections, 32 of the 256 connections of upstream.maxConnectionsPerLoop
                """
            ),
        ]
    )
    func descriptors(limit: Int, seen: String) {
        let finding = ConfigurationCheck.descriptors(Self.configuration, limit: limit)
        #expect(finding.seen == seen)
        #expect(finding.advice?.contains("Raise the limit to 22294 ") ?? true)
    }

    @Test("A setting that stops serve is a problem; other warnings of the configuration stay warnings")
    func configuration() {
        let file: String? = nil
        let missing = ConfigurationCheck(ConfigurationInput(file: file, environment: [:]), now: .sample)
        #expect(missing.findings.map(\.status) == [.problem, .problem, .warning])
        #expect(
            missing.findings.prefix(2)
                .allSatisfy { $0.seen.contains("is not set") && $0.advice?.contains("not start") == true }
        )
        #expect(missing.findings.last?.seen.hasPrefix("http.host: API keys travel in the clear") == true)
        let stopping = Array((missing.configuration?.warnings ?? []).prefix(2))
        #expect(ConfigurationCheck.cautions(stopping, besides: stopping).isEmpty)
        let other = ConfigurationProblem(.variable("GATEWAY_X"), message: "is unusual")
        let cautions = ConfigurationCheck.cautions(stopping + [other], besides: stopping)
        #expect(cautions.map(\.status) == [.warning])
        #expect(cautions.first?.seen == "GATEWAY_X: is unusual" && cautions.first?.advice != nil)
        #expect(Diagnosis(cautions).status == .warning)
    }

    @Test("A tenant with client names is a warning if the listener asks for no client certificate")
    func clientNames() throws {
        let tenants = [try Tenant.sample("open"), try Tenant.sample("strict", clientNames: ["orders.example.com"])]
        var configuration = Self.configuration
        let findings = ConfigurationCheck.clientNames(configuration, tenants)
        #expect(findings.map(\.subject) == ["strict"] && findings.map(\.status) == [.warning])
        configuration.http.tls.clientCAFile = "/ca.pem"
        #expect(ConfigurationCheck.clientNames(configuration, tenants).isEmpty)
    }

    @Test(
        "Free space below 1 GiB is a warning, below 64 MiB a problem",
        arguments: [(1 << 30, .ok), ((1 << 30) - 1, .warning), (64 << 20, .warning), ((64 << 20) - 1, .problem)]
            as [(Int, Finding.Status)]
    )
    func space(bytes: Int, status: Finding.Status) {
        #expect(DataDirectoryCheck.space("/data", freeBytes: bytes).status == status)
    }

    @Test("A secret file that others can read is a problem, unless its directory keeps them out")
    func files() async throws {
        try await TemporaryDirectory.with { directory in
            let files = FileManager.default
            let file = try directory.file("secret", "x")
            func status(mode: Int, directoryMode: Int = 0o755, isSecret: Bool = true) throws -> Finding.Status {
                try files.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
                try files.setAttributes([.posixPermissions: directoryMode], ofItemAtPath: directory.path)
                return FilesCheck.finding(file, "GATEWAY_X_FILE", isSecret: isSecret).status
            }
            let isOpen = FileFacts(file)?.isReachableByOthers == true
            #expect(try status(mode: 0o600) == .ok)
            #expect(try status(mode: 0o640) == .ok)
            #expect(try status(mode: 0o644, directoryMode: 0o700) == .ok)
            #expect(try status(mode: 0o644, isSecret: false) == .ok)
            // If the tests' own directory is closed to others, so is everything in it.
            #expect(try status(mode: 0o644) == (isOpen ? .problem : .ok))
            #expect(try status(mode: 0o602, isSecret: false) == (isOpen ? .problem : .ok))
            #expect(FilesCheck.finding("\(directory.path)/none", "X", isSecret: true).status == .problem)
            #expect(FilesCheck.finding(directory.path, "X", isSecret: true).status == .problem)
        }
    }

    @Test(
        "A group-writable data directory is fine if root, as on Kubernetes, or the gateway owns it",
        arguments: [(0, .ok), (10_001, .ok), (54_321, .warning)] as [(Int, Finding.Status)]
    )
    func directoryOwner(owner: Int, status: Finding.Status) async throws {
        try await TemporaryDirectory.with { directory in
            var facts = try #require(FileFacts(directory.path))
            (facts.owner, facts.mode) = (owner, 0o2775)
            #expect(DataDirectoryCheck.access(directory.path, facts, user: 10_001).status == status)
        }
    }

    /// The findings for a tenant with one legacy credential, without a gateway to ask.
    private static func findings(
        isMasterKeyTried: Bool = true,
        senderID: String? = nil,
        endpoint: String? = nil
    ) throws -> [Finding] {
        var tenant = try Tenant.sample("shop")
        tenant.senderID = senderID
        let stored = StoredCredential(
            tenant: tenant.id,
            kind: .legacy,
            version: 1,
            envelope: Envelope(wrappedKey: Data(), sealed: Data()),
            endpoint: endpoint,
            fingerprint: "0",
            createdAt: .sample
        )
        let check = CredentialsCheck(
            tenants: [],
            unopened: [],
            isMasterKeyTried: isMasterKeyTried,
            plainHTTP: PlainHTTP(hosts: ["Inner.example"]),
            gateway: nil,
            tls: .makeClientConfiguration(),
            token: nil,
            now: .sample
        )
        return check.findings(.init(tenant: tenant, credentials: [stored]), checks: nil)
    }

    @Test("A credential is reported as openable only if the master key was tried on it", arguments: [true, false])
    func untried(isTried: Bool) throws {
        let findings = try Self.findings(isMasterKeyTried: isTried)
        #expect(findings.map(\.status) == [.ok])
        #expect(findings.first?.seen.contains("without a sender id") == true)
        #expect(findings.first?.seen.contains("can be opened") == isTried)
        #expect(findings.first?.seen.contains("was not tried") == !isTried)
    }

    @Test(
        "A credential's plain HTTP endpoint is a problem unless its host is local or allowed",
        arguments: [
            ("http://fcm.example:8080", Finding.Status.problem), ("http://10.0.0.1", .problem),
            ("http://inner.example", .ok), ("http://127.0.0.1:8085", .ok), ("https://fcm.example", .ok),
        ]
    )
    func plainEndpoint(endpoint: String, status: Finding.Status) throws {
        let findings = try Self.findings(senderID: "123456789012", endpoint: endpoint)
        #expect(findings.map(\.status) == [status])
        #expect((findings.first?.advice?.contains("upstream.allowPlainHTTP") ?? false) == (status == .problem))
    }

    @Test("The worst finding decides the status, and each is printed with its advice")
    func diagnosis() throws {
        let diagnosis = Diagnosis([
            .warning(.credentials, "shop", "is old", "wait"), .ok(.configuration, nil, "is fine\u{1B}"),
            .problem(.store, nil, "is gone", "look"),
        ])
        #expect(diagnosis.status == .problem)
        let output = diagnosis.output(json: false)
        #expect(
            output.answer == """
                STATUS   CHECK          SEEN
                ok       configuration  is fine\\u{1b}
                problem  store          is gone
                                          → look
                warning  credentials    shop: is old
                                          → wait
                """
        )
        #expect(output.remark == "1 problem, 1 warning")
        #expect(Diagnosis([]).output(json: false).remark == "all is well")
        let json = try JSONValue(parsing: diagnosis.output(json: true).answer)
        #expect(json.text("status") == "problem")
        #expect(json["counts"]?.integer("warning") == 1)
        #expect(json.list("findings").map { $0.text("check") } == ["configuration", "store", "credentials"])
    }
}
