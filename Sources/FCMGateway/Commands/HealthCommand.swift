import ArgumentParser
import EventLoopHTTP
import Foundation
import GatewayService
import HTTPTypes
import NIOCore
import NIOSSL
import StrictJSON

extension HealthCommand {
    /// Reads the state of a gateway from its admin listener, without a token.
    struct Probe: Sendable {
        /// The timeout of one request; shorter than the intervals of service managers.
        var timeout = TimeAmount.seconds(4)
        let url: BaseURL
        let tls: TLSConfiguration

        /// Creates a probe of an address that the operator named.
        init(url: BaseURL, tls: TLSConfiguration) {
            (self.url, self.tls) = (url, tls)
        }

        /// Creates a probe of this machine's gateway, as configured.
        ///
        /// The listener's certificate names the public host, so the name is not verified. Without authorities, the
        /// certificate is not verified either. No secrets are sent or received. Throws if the listener's port is
        /// unknown, or if the listener requires a client certificate and none is given.
        init(_ listener: GatewayConfiguration.AdminListener, tls: TLSConfiguration) throws(CommandFailure) {
            let server = listener.server
            guard server.port != 0 else {
                throw CommandFailure("admin.port is 0, so only the gateway itself knows its port; give --admin-url")
            }
            guard listener.tls.clientCAFile == nil || tls.privateKey != nil else {
                throw CommandFailure(
                    "admin.tls.clientCaFile asks for client certificates; give --client-certificate and --client-key"
                )
            }
            let host =
                switch server.host {
                case "0.0.0.0", "": "127.0.0.1"
                case "::": "[::1]"
                default: server.host.contains(":") ? "[\(server.host)]" : server.host
                }
            let address = "\(listener.tls.isPlain ? "http" : "https")://\(host):\(server.port)"
            guard let url = BaseURL(address) else { throw CommandFailure("admin.host is not an address: \(address)") }
            self.url = url
            var local = tls
            local.certificateVerification = tls.namesAuthorities ? .noHostnameVerification : .none
            self.tls = local
        }

        /// Requests `readyz` or `livez` once. Throws `CommandFailure` if no answer arrives.
        ///
        /// Returns the answer's status and a problem's detail; `isGateways` is true if the answer has a gateway's form.
        /// Each request has its own connection, because an idle connection would delay a listener that closes.
        func answer(to path: String) async throws -> (status: Int, isGateways: Bool, detail: String?) {
            try await APIClient.with(self.url, tls: self.tls) { api in
                let response = try await api.send(.get, [path], timeout: self.timeout)
                let body = (try? JSONDocument(parsing: response.body))?.root
                let health = body?["status"]?.string
                return (response.status.code, health == "pass" || health == "fail", body?["detail"]?.string?.printable)
            }
        }

        /// Requests a path once. Throws `CommandFailure` unless the answer's status is 200.
        func ask(_ path: String) async throws {
            let (status, _, detail) = try await self.answer(to: path)
            guard status != 200 else { return }
            let meaning =
                status == 503 ? ", it is starting, draining, or can't write its audit" : detail.map { ": \($0)" } ?? ""
            throw CommandFailure("\(self.url)/\(path) answered HTTP \(status)\(meaning)")
        }
    }
}

/// `health`: reports whether a gateway accepts requests, for container engines and service managers.
struct HealthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Exit with 0 if a gateway accepts requests.",
        discussion: """
            Requests /readyz of the admin listener at --admin-url or GATEWAY_ADMIN_URL, else at the configured address \
            on this machine. Needs no token. The exit code is 1 if the gateway is not ready or does not answer.

            Example:
              fcm-gateway health --config gateway.yaml --wait 30s
            """
    )

    private static let pause = Duration.milliseconds(200)

    @OptionGroup var options: ConfigOptions
    @Option(name: .customLong("admin-url"), help: "The admin listener's address.") var adminURL: BaseURL?
    @Flag(help: "Check liveness (/livez) instead of readiness.") var live = false
    @Option(help: "Repeat the check until it succeeds, for at most this long, such as 30s.") var wait: DurationArgument?
    @OptionGroup var tls: TLSOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let probe = try self.probe(environment: ProcessInfo.processInfo.environment)
        let limit = self.wait.map { Duration.seconds($0.seconds) }
        try await Self.repeating(for: limit, pause: Self.pause, clock: ContinuousClock()) {
            try await probe.ask(self.path)
        }
        try self.answer(probe).write()
    }

    var path: String { self.live ? "livez" : "readyz" }

    func answer(_ probe: Probe) -> CommandOutput {
        let status = self.live ? "live" : "ready"
        guard self.output.isJSON else { return CommandOutput(status) }
        return .json { writer in
            writer.member("status", status)
            writer.member("url", probe.url.text)
        }
    }

    /// Returns the probe of the gateway that the operator named, else of the configured gateway.
    func probe(environment: [String: String]) throws -> Probe {
        let tls = try self.tls.configuration(environment: environment)
        if let url = self.adminURL { return Probe(url: url, tls: tls) }
        if environment["GATEWAY_ADMIN_URL"] != nil {
            let url = try BaseURL.inVariable("GATEWAY_ADMIN_URL", default: AdminOptions.defaultURL, environment)
            return Probe(url: url, tls: tls)
        }
        return try Probe(self.options.load(environment: environment).admin, tls: tls)
    }

    /// Repeats a body until it succeeds or the limit has passed. Without a limit, runs the body once. Throws the last
    /// error.
    static func repeating<C: Clock<Duration>>(
        for limit: Duration?,
        pause: Duration,
        clock: C,
        _ body: () async throws -> Void
    ) async throws {
        let end = clock.now.advanced(by: limit ?? .zero)
        while true {
            do {
                return try await body()
            } catch let failure as CommandFailure {
                guard clock.now < end else { throw failure }
            }
            try await clock.sleep(for: pause)
        }
    }
}
