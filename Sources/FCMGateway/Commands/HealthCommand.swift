import ArgumentParser
import Foundation
import GatewayService

/// `health`: asks a gateway whether it takes requests, for container engines and service managers.
struct HealthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Ask a gateway whether it takes requests, and exit with 0 when it does.",
        discussion: """
            Asks /readyz of the admin listener at --admin-url or GATEWAY_ADMIN_URL, else at the address that the \
            configuration gives it on this machine. It needs no token. The exit code is 1 for every answer but yes, \
            and when there is none.
            """
    )

    /// How long to wait between two questions.
    private static let pause = Duration.milliseconds(200)

    @OptionGroup var options: ConfigOptions
    @Option(name: .customLong("admin-url"), help: "The admin listener's address.") var adminURL: BaseURL?
    @Flag(help: "Ask whether the process lives, not whether it takes requests.") var live = false
    @Option(help: "Ask again for this long until the answer is yes, such as 30s.") var wait: DurationArgument?
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let probe = try self.probe(environment: ProcessInfo.processInfo.environment)
        let path = self.path
        let limit = self.wait.map { Duration.seconds($0.seconds) }
        try await probe.withClient { http in
            try await Self.repeating(for: limit, pause: Self.pause, clock: ContinuousClock()) {
                try await probe.ask(path, http: http)
            }
        }
        try self.answer(probe).write()
    }

    /// What is asked for.
    var path: String { self.live ? "livez" : "readyz" }

    /// What there is to say of a gateway that answers yes.
    func answer(_ probe: HealthProbe) throws -> CommandOutput {
        let status = self.live ? "live" : "ready"
        guard self.output.output == .json else { return CommandOutput(status) }
        let object = JSONValue.object(["status": .string(status), "url": .string(probe.url.text)])
        return CommandOutput(try object.prettyText())
    }

    /// Whom to ask.
    ///
    /// - Parameter environment: The process's variables.
    /// - Returns: The gateway that was named, else the one that the configuration describes.
    /// - Throws: `ValidationError` for a variable that holds no address, `CommandFailure` for a listener that can't be
    ///   found or asked, `ExitCode` after the configuration's problems were printed.
    func probe(environment: [String: String]) throws -> HealthProbe {
        if let url = self.adminURL {
            return HealthProbe(url: url)
        }
        if environment["GATEWAY_ADMIN_URL"] != nil {
            let url = try BaseURL.fromVariable(
                "GATEWAY_ADMIN_URL",
                default: AdminOptions.defaultURL,
                environment: environment
            )
            return HealthProbe(url: url)
        }
        return try HealthProbe(self.options.load(environment: environment).admin)
    }

    /// Does something until it succeeds or the time is up.
    ///
    /// - Parameters:
    ///   - limit: How long to go on; nil does it once.
    ///   - pause: How long to wait in between.
    ///   - clock: Measures the time.
    ///   - body: What to do.
    /// - Throws: What `body` threw last.
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
