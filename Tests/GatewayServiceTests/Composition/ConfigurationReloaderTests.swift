import Foundation
import GatewayCore
import GatewayTestKit
import GatewayUpstream
import Logging
import Testing

@testable import GatewayService

struct ConfigurationReloaderTests {
    private static let plain = "log:\n  level: info\n"

    private static func admits(_ hosts: TokenHosts, _ host: String) -> Bool {
        TokenURI("https://\(host)/token").map { hosts.admits($0) } ?? false
    }

    @Test("A reload applies limits, upstream settings and the log level, and names what needs a start")
    func everything() async throws {
        try await ReloadFixture.with({ _ in Self.plain }) { fixture in
            #expect(fixture.gauge == 1)
            let yaml = """
                log:
                  level: debug
                limits:
                  defaults:
                    tenant: [3/7s:5]
                upstream:
                  timeoutMs: 1500
                  deadlineMs: 2500
                  connectTimeoutMs: 1000
                  allowedTokenHosts: [tokens.example.org]
                """
            let policy = try RatePolicy.sample(3, per: 7, burst: 5)
            #expect(await fixture.reload(yaml) == 1)
            #expect(fixture.limits?.tenant == [policy])
            #expect(fixture.limits?.topic == RatePolicy.topicDefaults)
            #expect(fixture.upstream.requestDeadline.current == .milliseconds(2_500))
            #expect(fixture.upstream.attemptTimeout.current == .milliseconds(1_500))
            #expect(fixture.logLevel.current == .debug)
            #expect(Self.admits(fixture.upstream.tokenHosts.current, "tokens.example.org"))
            #expect(!Self.admits(fixture.upstream.tokenHosts.current, "oauth2.googleapis.com"))
            // Open connections were made with the old connectTimeoutMs.
            let warnings = fixture.logText.split(separator: "\n").filter { $0.hasPrefix("warning ") }
            #expect(
                warnings == [
                    "warning A changed setting takes effect at the next start only. key=upstream.connectTimeoutMs"
                ]
            )
            #expect(
                fixture.logText.contains(
                    "The configuration was reloaded. changed=limits.defaults.tenant,upstream.allowedTokenHosts,"
                        + "upstream.timeoutMs,upstream.deadlineMs,log.level"
                )
            )

            // Settings left out return to their defaults.
            #expect(await fixture.reload(Self.plain) == 1)
            #expect(fixture.limits == LimitPolicies())
            #expect(fixture.logLevel.current == .info)
        }
    }

    @Test(
        "A bad file changes nothing and is reported with line and key; a corrected one is applied",
        arguments: [
            ("log:\n  level: loud\nupstream:\n  timeoutMs: 9000", "line=2", "key=log.level"),
            ("upstream:\n  timeoutMs: 9000\n  deadlineMs: 8000", "line=2", "key=upstream.timeoutMs"),
            ("log:\n  level: debug\nhtpp:\n  port: 1", "line=3", "key=htpp"),
            ("log:\n  level: debug\n  bro", "line=", "file="),
            ("log: {level: debug", "line=", "file="),
            (
                "log:\n  level: debug\nlimits:\n  defaults:\n    topic: [1/86400s:1000000]",
                "line=5",
                "key=limits.defaults.topic"
            ),
            (
                "log:\n  level: debug\nhttp:\n  tls:\n    certificateFile: /none/a\n    privateKeyFile: /none/b",
                "line=5",
                "key=http.tls.certificateFile"
            ),
        ]
    )
    func badFile(yaml: String, place: String, key: String) async throws {
        try await ReloadFixture.with({ _ in Self.plain }) { fixture in
            #expect(await fixture.reload(yaml) == 0)
            #expect(fixture.limits == LimitPolicies())
            #expect(fixture.logLevel.current == .info)
            #expect(fixture.upstream.attemptTimeout.current == .seconds(10))
            let errors = fixture.logText.split(separator: "\n").filter { $0.hasPrefix("error ") }
            #expect(errors.count == 1)
            let error = String(errors.first ?? "")
            #expect(error.contains("The configuration was not reloaded; the previous one stays in force."))
            #expect(error.contains(place), "\(error)")
            #expect(error.contains(key), "\(error)")
            #expect(await fixture.reload(Self.plain + "upstream:\n  timeoutMs: 1000\n  connectTimeoutMs: 900\n") == 1)
            #expect(fixture.upstream.attemptTimeout.current == .seconds(1))
        }
    }

    @Test("A missing file changes nothing")
    func missingFile() async throws {
        try await ReloadFixture.with({ _ in "log:\n  level: error\n" }) { fixture in
            try FileManager.default.removeItem(atPath: "\(fixture.directory.path)/gateway.yaml")
            #expect(await fixture.reload() == 0)
            #expect(fixture.logLevel.current == .error)
        }
    }

    @Test("The environment overrides a reloaded file")
    func environmentWins() async throws {
        try await ReloadFixture.with({ _ in Self.plain }) { fixture in
            // GATEWAY_LOG_FORMAT is text.
            #expect(await fixture.reload("log:\n  level: info\n  format: json\n") == 1)
            #expect(!fixture.logText.contains("log.format"))
        }
    }

    @Test(
        "A changed setting that needs a start is named at every reload until it is changed back",
        arguments: [
            ("http:\n  port: 1", "http.port"), ("admin:\n  host: 127.0.0.2", "admin.host"), ("dataDir: /x", "dataDir"),
            ("eventLoops: 999", "eventLoops"), ("store:\n  url: sqlite:other.sqlite", "store.url"),
            ("http:\n  drainGraceMs: 1", "http.drainGraceMs"), ("audit:\n  queueRecords: 900", "audit.queueRecords"),
            ("audit:\n  mode: strict", "audit.mode"), ("audit:\n  spoolBytes: 2000000", "audit.spoolBytes"),
            ("upstream:\n  v1Endpoint: https://example.org", "upstream.v1Endpoint"),
        ]
    )
    func needsStart(yaml: String, key: String) async throws {
        try await ReloadFixture.with({ _ in Self.plain }) { fixture in
            let warning = "warning A changed setting takes effect at the next start only. key=\(key)\n"
            for round in 1...2 {
                #expect(await fixture.reload(Self.plain + yaml) == 1)
                #expect(("\(fixture.logText)\n").matches(of: warning).count == round)
            }
            #expect(await fixture.reload(Self.plain) == 1)
            #expect(("\(fixture.logText)\n").matches(of: warning).count == 2)
        }
    }

    // MARK: Certificates

    private static func tls(_ directory: TemporaryDirectory) -> String {
        """
        http:
          tls:
            certificateFile: \(directory.path)/server.crt
            privateKeyFile: \(directory.path)/server.key

        """
    }

    @Test("A renewed certificate is applied; a truncated, mismatched or expired one stops the whole reload")
    func certificates() async throws {
        let authority = try TestAuthority()
        try await ReloadFixture.with({ directory in
            try CertificateFiles(directory: directory).write(authority.certify("first"))
            return Self.tls(directory)
        }) { fixture in
            let files = CertificateFiles(directory: fixture.directory)
            let yaml = Self.tls(fixture.directory)
            try files.write(authority.certify("second"))
            #expect(await fixture.reload() == 1)

            let third = try authority.certify("third")
            let cut = String(third.certificate.prefix(300))
            try files.write(TestIdentity(certificate: cut, privateKey: third.privateKey))
            #expect(await fixture.reload(yaml + "log:\n  level: debug\n") == 0)
            try files.write(
                TestIdentity(certificate: third.certificate, privateKey: try authority.certify("x").privateKey)
            )
            #expect(await fixture.reload() == 0)
            try files.write(authority.certify("late", validity: -2_000..<(-1_000)))
            #expect(await fixture.reload() == 0)
            #expect(fixture.logText.contains("the certificate in \(fixture.directory.path)/server.crt expired"))
            #expect(
                fixture.logText.contains(
                    "file=\(fixture.directory.path)/gateway.yaml key=http.tls.certificateFile line=3"
                )
            )
            #expect(fixture.logLevel.current == .info)

            try files.write(third)
            #expect(await fixture.reload() == 1)
            #expect(fixture.logLevel.current == .debug)
        }
    }

    @Test("A certificate that expired in use does not stop a reload, which warns of it")
    func expiredInUse() async throws {
        let authority = try TestAuthority()
        try await ReloadFixture.with({ directory in
            try CertificateFiles(directory: directory).write(authority.certify("first"))
            return Self.tls(directory)
        }) { fixture in
            #expect(!fixture.logText.contains("warning"))
            fixture.clock.advance(by: .seconds(2 * 86_400))
            #expect(await fixture.reload(Self.tls(fixture.directory) + "log:\n  level: debug\n") == 1)
            #expect(fixture.logLevel.current == .debug)
            #expect(fixture.logText.contains("warning Clients will reject a listener's certificate."))
        }
    }

    @Test("Switching a listener from plain HTTP to TLS needs a start")
    func switchedOn() async throws {
        try await ReloadFixture.with({ _ in Self.plain }) { fixture in
            try CertificateFiles(directory: fixture.directory).write(try TestAuthority().certify("first"))
            #expect(await fixture.reload(Self.tls(fixture.directory) + "log:\n  level: debug\n") == 1)
            #expect(fixture.logLevel.current == .debug)
            for key in ["certificateFile", "privateKeyFile"] {
                #expect(fixture.logText.contains("next start only. key=http.tls.\(key)"))
            }
        }
    }

    @Test("Ten reloads of the same file change nothing")
    func again() async throws {
        try await ReloadFixture.with({ _ in Self.plain }) { fixture in
            for _ in 1...10 { #expect(await fixture.reload() == 1) }
            #expect(fixture.logText.matches(of: "The configuration was reloaded. changed=\n").count == 9)
            #expect(!fixture.logText.contains("warning"))
        }
    }
}

extension String {
    /// The ranges of a text, for counting.
    fileprivate func matches(of text: String) -> [Range<String.Index>] {
        self.ranges(of: text)
    }
}
