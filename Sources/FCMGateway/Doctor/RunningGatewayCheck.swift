import GatewayCore
import GatewayService
import NIOSSL

/// Looks for a running gateway, and reads its state as `health` does.
struct RunningGatewayCheck: Sendable {
    struct Result: Sendable {
        var findings: [Finding] = []
        /// The admin listener that may get a token; `nil` if no gateway answers or its identity is unknown.
        var adminURL: BaseURL?
    }

    private static let variable = "GATEWAY_ADMIN_URL"

    let configuration: GatewayConfiguration
    let environment: [String: String]
    let tls: TLSConfiguration
    let isStoreServed: Bool

    func examine() async -> Result {
        var result = Result()
        let given = self.environment[Self.variable].flatMap { BaseURL($0) }
        if self.environment[Self.variable] != nil, given == nil {
            // Does not repeat the variable's value, which may be a password.
            result.findings.append(
                .problem(
                    .listeners,
                    Self.variable,
                    "is not an address such as \(AdminOptions.defaultURL), so commands for the admin API refuse it",
                    "Correct or remove the variable; the next findings are about the configured admin listener"
                )
            )
        }
        let probe: HealthCommand.Probe
        do throws(CommandFailure) {
            if let given {
                probe = HealthCommand.Probe(url: given, tls: self.tls)
            } else {
                probe = try HealthCommand.Probe(self.configuration.admin, tls: self.tls)
            }
        } catch {
            let isKnown = self.configuration.admin.tls.clientCAFile != nil || !self.isStoreServed
            let seen = "no gateway was asked: \(error.message)"
            result.findings.append(isKnown ? .ok(.listeners, nil, seen) : self.silence(nil))
            return result
        }
        let url = probe.url
        do {
            let answer = try await probe.answer(to: "readyz")
            result.findings.append(Self.finding(url, answer))
            // Without a given address or authorities, TLS does not prove the listener's identity.
            let isKnown = given != nil || self.configuration.admin.tls.isPlain || self.tls.namesAuthorities
            if isKnown, answer.isGateways { result.adminURL = url }
        } catch {
            let none = Finding.ok(.listeners, url.text, "no gateway answers")
            result.findings.append(self.isStoreServed ? self.silence(url) : none)
        }
        return result
    }

    private static func finding(_ url: BaseURL, _ answer: (status: Int, isGateways: Bool, detail: String?)) -> Finding {
        switch (answer.status, answer.isGateways) {
        case (200, true):
            .ok(.listeners, url.text, "the gateway is ready")
        case (503, true):
            .problem(
                .listeners,
                url.text,
                "the gateway runs, but is not ready",
                "It is starting, stopping or waiting: see its log"
            )
        default:
            .problem(
                .listeners,
                url.text,
                "answers HTTP \(answer.status) to /readyz\(answer.detail.map { ": \($0)" } ?? ", as no gateway does")",
                "Find the program that uses the port (ss -ltnp), or correct the address"
            )
        }
    }

    private func silence(_ url: BaseURL?) -> Finding {
        .warning(
            .listeners,
            url?.text,
            "a gateway serves the store, but its admin listener does not answer here",
            "Set GATEWAY_ADMIN_URL to the listener's address, or check that the gateway does not hang"
        )
    }
}
