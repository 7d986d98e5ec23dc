import ArgumentParser
import GatewayTestKit
import NIOCore
import NIOSSL
import Synchronization
import Testing

@testable import FCMGateway

struct HealthCommandTests {
    /// A clock whose time passes only in its sleeps.
    private struct SleepingClock: Clock {
        let passed = Passed()
        var now: ContinuousClock.Instant { self.passed.now }
        let minimumResolution = Duration.zero

        func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
            self.passed.now = deadline
        }

        /// The time, shared by the clock's copies.
        final class Passed: Sendable {
            private let instant = Mutex(ContinuousClock.now)

            var now: ContinuousClock.Instant {
                get { self.instant.withLock { $0 } }
                set { self.instant.withLock { $0 = newValue } }
            }
        }
    }

    private static func command(_ arguments: [String] = []) throws -> HealthCommand {
        try #require(try FCMGatewayCommand.parseAsRoot(["health"] + arguments) as? HealthCommand)
    }

    @Test(
        "health succeeds on HTTP 200 and otherwise reports the status",
        arguments: [
            (200, [], "GET /readyz", nil), (200, ["--live"], "GET /livez", nil),
            (503, [], "GET /readyz", "/readyz answered HTTP 503, it is starting, draining, or can't write its audit"),
            (404, ["--live"], "GET /livez", "/livez answered HTTP 404"),
            (301, [], "GET /readyz", "/readyz answered HTTP 301"),
        ]
    )
    func answers(status: Int, arguments: [String], request: String, failure: String?) async throws {
        let headers = status == 301 ? ["Location": "/livez"] : [:]
        try await StubServer.with({ _ in StubServer.Reply(status: status, headers: headers, body: "{}") }) { server in
            let command = try Self.command(["--admin-url", server.address] + arguments)
            var patient = try command.probe(environment: [:])
            patient.timeout = .seconds(600)
            let probe = patient
            if let failure {
                let error = await #expect(throws: CommandFailure.self) { try await probe.ask(command.path) }
                #expect(error?.message == server.address + failure)
            } else {
                try await probe.ask(command.path)
            }
            #expect(server.requests.map(\.line) == [request])
            #expect(server.requests.first?.headers["authorization"] == nil)
        }
    }

    @Test("At the data listener's address health prints the detail of the answer")
    func otherListener() async throws {
        let detail = "This is the data listener; the admin listener (admin.port) has this path"
        let reply = StubServer.Reply(status: 404, headers: [:], body: #"{"status":404,"detail":"\#(detail)"}"#)
        try await StubServer.with({ _ in reply }) { server in
            let probe = try Self.command(["--admin-url", server.address]).probe(environment: [:])
            let error = await #expect(throws: CommandFailure.self) { try await probe.ask("readyz") }
            #expect(error?.message == "\(server.address)/readyz answered HTTP 404: \(detail)")
        }
    }

    @Test("A refused connection fails and names the address")
    func refused() async throws {
        try await ClosedPort.with { port in
            let address = "http://127.0.0.1:\(port)"
            let probe = try Self.command(["--admin-url", address]).probe(environment: [:])
            let error = await #expect(throws: CommandFailure.self) { try await probe.ask("readyz") }
            #expect(error?.message == "no answer from \(address): the connection was refused")
        }
    }

    @Test(
        "Without --admin-url the address comes from the environment or the configuration",
        arguments: [
            ("{}", [:], "http://127.0.0.1:8081"),
            ("admin: {host: 0.0.0.0, port: 9001}", [:], "http://127.0.0.1:9001"),
            ("admin: {host: '::'}", [:], "http://[::1]:8081"),
            ("admin: {host: '2001:db8::7'}", [:], "http://[2001:db8::7]:8081"),
            ("admin: {host: 10.0.0.7}", ["GATEWAY_ADMIN_PORT": "9002"], "http://10.0.0.7:9002"),
            ("admin: {tls: {certificateFile: /c, privateKeyFile: /k}}", [:], "https://127.0.0.1:8081"),
            ("admin: {port: 9001}", ["GATEWAY_ADMIN_URL": "https://gw:9003"], "https://gw:9003"),
        ]
    )
    func addresses(file: String, environment: [String: String], address: String) async throws {
        try await TemporaryDirectory.with { directory in
            let path = try directory.file("gateway.yaml", file + "\n")
            let probe = try Self.command(["--config", path]).probe(environment: environment)
            #expect(probe.url.text == address)
            // The certificate is verified only for an explicitly given address.
            let verifies = probe.tls.certificateVerification != .none
            #expect(verifies == (environment["GATEWAY_ADMIN_URL"] != nil))
        }
    }

    @Test(
        "A configured listener that can't be probed fails with the reason",
        arguments: [
            ("admin: {port: 0}", "admin.port is 0, so only the gateway itself knows its port; give --admin-url"),
            (
                "admin: {tls: {certificateFile: /c, privateKeyFile: /k, clientCaFile: /a}}",
                "admin.tls.clientCaFile asks for client certificates; give --client-certificate and --client-key"
            ),
            ("admin: {host: 'a b'}", "admin.host is not an address: http://a b:8081"),
        ]
    )
    func unaskable(file: String, message: String) async throws {
        try await TemporaryDirectory.with { directory in
            let command = try Self.command(["--config", try directory.file("gateway.yaml", file + "\n")])
            #expect(throws: CommandFailure(message)) { try command.probe(environment: [:]) }
            // An explicit address overrides the configuration.
            let named = try Self.command(["--admin-url", "http://gw"]).probe(environment: [:])
            #expect(named.url == BaseURL("http://gw"))
        }
    }

    @Test(
        "health retries until it succeeds or the time is up",
        arguments: [(nil, 1, 1), (nil, 0, 1), (1, 3, 3), (1, 100, 6), (0, 5, 1)] as [(Int?, Int, Int)]
    )
    func waits(seconds: Int?, succeedsAt: Int, asked: Int) async throws {
        let clock = SleepingClock()
        var count = 0
        let wait = {
            try await HealthCommand.repeating(
                for: seconds.map { .seconds($0) },
                pause: .milliseconds(200),
                clock: clock
            ) {
                count += 1
                guard count == succeedsAt else { throw CommandFailure("no \(count)") }
            }
        }
        if asked == succeedsAt {
            try await wait()
        } else {
            // The last failure is reported.
            await #expect(throws: CommandFailure("no \(asked)")) { try await wait() }
        }
        #expect(count == asked)
    }

    @Test("The output is one word, or a JSON object with the address")
    func output() throws {
        let probe = HealthCommand.Probe(url: try #require(BaseURL("http://gw:1")), tls: .makeClientConfiguration())
        #expect(try Self.command().answer(probe) == CommandOutput("ready"))
        #expect(try Self.command(["--live"]).answer(probe) == CommandOutput("live"))
        let json = try Self.command(["--output", "json"]).answer(probe)
        #expect(json == CommandOutput("{\n  \"status\" : \"ready\",\n  \"url\" : \"http://gw:1\"\n}"))
    }
}
