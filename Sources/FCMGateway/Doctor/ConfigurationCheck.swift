import GatewayCore
import GatewayService

/// Reads the configuration as `serve` does, and says all that is wrong with it.
struct ConfigurationCheck {
    /// What there is to say.
    var findings: [Finding] = []
    /// The configuration in force; nil when it can't be read.
    var configuration: GatewayConfiguration?
    /// The listeners' certificates, as far as they can be used.
    var certificates = ListenerCertificates()

    /// Examines a file and the environment.
    static func examine(_ input: ConfigurationInput) -> ConfigurationCheck {
        var result = ConfigurationCheck()
        do {
            let configuration = try input.configuration()
            result.configuration = configuration
            var stopping: [ConfigurationProblem] = []
            do throws(ConfigurationProblems) {
                _ = try configuration.servingSecrets()
            } catch {
                stopping = error.problems
            }
            result.add(stopping)
            result.findings += Self.cautions(configuration.warnings, besides: stopping)
            do throws(ConfigurationProblems) {
                try input.checkAuthorities(configuration)
            } catch {
                result.add(error.problems)
            }
            do throws(ConfigurationProblems) {
                result.certificates = try input.certificates(configuration)
            } catch {
                result.add(error.problems, check: .certificates)
            }
        } catch {
            result.add(error.problems)
        }
        if !result.findings.contains(where: { $0.check == .configuration }) {
            let count = input.describe().count { $0.source != .builtIn }
            result.findings.append(
                .ok(.configuration, nil, "\(count) settings differ from the defaults; all are valid")
            )
        }
        return result
    }

    /// What `serve` starts with, and somebody should look at all the same.
    static func cautions(
        _ warnings: [ConfigurationProblem],
        besides stopping: [ConfigurationProblem]
    ) -> [Finding] {
        warnings.filter { !stopping.contains($0) }
            .map {
                .warning(.configuration, nil, $0.description, "serve starts with this; config check tells it as well")
            }
    }

    private mutating func add(_ problems: [ConfigurationProblem], check: Finding.Check = .configuration) {
        self.findings += problems.map { problem in
            .problem(
                check,
                nil,
                problem.description,
                self.configuration == nil
                    ? "serve does not start with this; nothing that depends on the configuration was checked"
                    : "serve does not start with this"
            )
        }
    }
}
