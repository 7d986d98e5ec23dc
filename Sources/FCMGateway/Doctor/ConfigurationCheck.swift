import EventLoopHTTP
import GatewayCore
import GatewayService
import GatewayUpstream
import NIOPosix

/// Repeats the checks that `serve` and `config check` make before anything starts, and reports all refusals.
struct ConfigurationCheck {
    /// A certificate that expires within this many days should have been renewed.
    private static let warningDays = 14

    private(set) var findings: [Finding] = []
    private(set) var configuration: GatewayConfiguration?

    init(_ input: ConfigurationInput, now: Timestamp) {
        var certificates = ListenerCertificates()
        do {
            let configuration = try input.configuration()
            self.configuration = configuration
            var stopping: [ConfigurationProblem] = []
            do throws(ConfigurationProblems) {
                _ = try configuration.servingSecrets()
            } catch {
                stopping = error.problems
            }
            self.add(stopping)
            self.findings += Self.cautions(configuration.warnings.map(input.sources.locate), besides: stopping)
            do throws(ConfigurationProblems) {
                try input.checkServing(configuration)
            } catch {
                self.add(error.problems)
            }
            do throws(ConfigurationProblems) {
                try input.checkAuthorities(configuration)
            } catch {
                self.add(error.problems)
            }
            do throws(ConfigurationProblems) {
                certificates = try input.certificates(configuration)
            } catch {
                self.add(error.problems, check: .certificates)
            }
        } catch {
            self.add(error.problems)
        }
        if !self.findings.contains(where: { $0.check == .configuration }) {
            let count = input.describe().count { $0.source != .builtIn }
            self.findings.append(.ok(.configuration, nil, "\(count) settings differ from the defaults; all are valid"))
        }
        for (section, certificate) in [("http", certificates.data), ("admin", certificates.admin)] {
            guard let certificate else { continue }
            self.findings.append(Self.finding(certificate, "\(section).tls", now: now))
        }
    }

    static func cautions(_ warnings: [ConfigurationProblem], besides stopping: [ConfigurationProblem]) -> [Finding] {
        warnings.filter { !stopping.contains($0) }
            .map {
                .warning(.configuration, nil, $0.description, "serve starts with this; config check reports it too")
            }
    }

    private mutating func add(_ problems: [ConfigurationProblem], check: Finding.Check = .configuration) {
        let rest = self.configuration == nil ? "; nothing that depends on the configuration was checked" : ""
        self.findings += problems.map { .problem(check, nil, $0.description, "serve does not start with this\(rest)") }
    }

    /// Reports a certificate's remaining days. The certificate and its key were compared when they were read.
    private static func finding(_ certificate: ListenerCertificate, _ subject: String, now: Timestamp) -> Finding {
        let advice = "Renew it, then send the gateway a SIGHUP"
        if let problem = certificate.untimeliness(at: now) {
            return .problem(.certificates, subject, problem.message, advice)
        }
        let days = (certificate.notValidAfter - now.seconds) / 86_400
        let seen = "matches its key, and is valid for \(days) more days"
        return days < Self.warningDays
            ? .warning(.certificates, subject, seen, advice) : .ok(.certificates, subject, seen)
    }

    /// Reports tenants that require client certificates although the data listener requests none.
    static func clientNames(_ configuration: GatewayConfiguration, _ tenants: [Tenant]) -> [Finding] {
        guard configuration.http.tls.clientCAFile == nil else { return [] }
        return tenants.filter { !$0.clientNames.isEmpty }
            .map {
                .warning(
                    .certificates,
                    "\($0.id)",
                    "its client_names require a client certificate, which the data listener does not request: all its "
                        + "requests are refused",
                    "Set http.tls.clientCaFile, or: fcm-gateway tenant set \($0.id) --reset client-names"
                )
            }
    }

    /// Checks that the Redis of the limits answers. Returns no findings if limits are in memory.
    static func limits(_ configuration: GatewayConfiguration) async -> [Finding] {
        guard !configuration.limits.redisURL.isEmpty else { return [] }
        do {
            try await configuration.askRedis(eventLoop: MultiThreadedEventLoopGroup.singleton.next())
            return [.ok(.limits, "Redis", "answers")]
        } catch {
            let seen = (error as? ConfigurationProblems)?.problems.map(\.message).joined(separator: "; ") ?? "\(error)"
            return [.problem(.limits, "Redis", seen, "Check limits.redisUrl and its password")]
        }
    }

    /// Compares the configured connections with the file descriptors, by the plan that `serve` uses.
    static func descriptors(_ configuration: GatewayConfiguration, limit: Int?) -> Finding {
        guard let limit else { return .ok(.resources, "file descriptors", "are not bounded") }
        let plan = DescriptorPlan(configuration, limit: limit)
        let bounds = [
            ("http.maxConnections", plan.dataConnections, configuration.http.server.maxConnections),
            ("admin.maxConnections", plan.adminConnections, configuration.admin.server.maxConnections),
            (
                "upstream.maxConnectionsPerLoop", plan.upstreamConnectionsPerLoop,
                configuration.upstream.maxConnectionsPerLoop
            ),
        ]
        let lowered = bounds.filter { $0.1 < $0.2 }.map { "\($0.1) of the \($0.2) connections of \($0.0)" }
        guard !lowered.isEmpty else {
            return .ok(.resources, "file descriptors", "\(limit) are enough for the configured connections")
        }
        return .warning(
            .resources,
            "file descriptors",
            "\(limit) leave room for " + lowered.joined(separator: ", "),
            """
            Raise the limit to \(DescriptorPlan.descriptors(for: configuration)) (LimitNOFILE= of systemd, ulimit -n, \
            --ulimit nofile= of containers)
            """
        )
    }
}
