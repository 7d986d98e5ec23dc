import ArgumentParser
import Foundation
import GatewayCore
import GatewayService
import GatewayStorage
import GatewayUpstream
import NIOSSL

/// `doctor`: runs the checks of `config check`, `health` and `credential check`, examines files, store and the ends of
/// audit chains, and advises on each problem.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check everything a gateway needs, and explain problems.",
        discussion: """
            Run doctor as the gateway's user, with the gateway's configuration and variables. It changes nothing, and \
            works beside a running gateway. It checks the configuration, files and their permissions, certificates, \
            the data directory, the store and its master key, the audit trail, the limits' Redis, file descriptors, a \
            running gateway and the tenants' credentials.

            It calls a running gateway at GATEWAY_ADMIN_URL, else at the configured address. That gateway proves each \
            tenant's credentials by a dry run. Exit codes: 0 no problems (perhaps warnings), 1 problems, 64 wrong usage.

            Example:
              fcm-gateway doctor --config gateway.yaml
            """
    )

    @OptionGroup var options: ConfigOptions
    @Flag(
        name: .long,
        help: "Let no gateway check credentials. The store, Redis and /readyz are still called."
    )
    var offline = false
    @Flag(name: .long, help: "Check the structure even of a store above 1 GiB.") var thorough = false
    @OptionGroup var tls: TLSOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        let tls = try self.tls.configuration(environment: environment)
        let diagnosis = await self.diagnosis(environment: environment, tls: tls)
        try diagnosis.output(json: self.output.isJSON).write()
        if diagnosis.status == .problem { throw ExitCode.failure }
    }

    private func diagnosis(environment: [String: String], tls: TLSConfiguration) async -> Diagnosis {
        let now = SystemWallClock().now()
        let configured = ConfigurationCheck(self.options.input(environment: environment), now: now)
        var findings = configured.findings
        findings += FilesCheck.examine(file: self.options.config, environment: environment, configured.configuration)
        guard let configuration = configured.configuration else { return Diagnosis(findings) }
        findings += DataDirectoryCheck.examine(configuration)
        findings.append(ConfigurationCheck.descriptors(configuration, limit: DescriptorPlan.currentLimit))
        findings += await ConfigurationCheck.limits(configuration)
        let store = await StoreCheck(configuration: configuration, isThorough: self.thorough).examine()
        findings += ConfigurationCheck.clientNames(configuration, store.inspection?.tenants.map(\.tenant) ?? [])
        let running = await RunningGatewayCheck(
            configuration: configuration,
            environment: environment,
            tls: tls,
            isStoreServed: store.isServed
        )
        .examine()
        let credentials = await CredentialsCheck(
            tenants: store.inspection?.tenants ?? [],
            unopened: store.unopened,
            isMasterKeyTried: store.isMasterKeyTried,
            plainHTTP: configuration.upstream.tokenHosts.plainHTTP,
            gateway: self.offline ? nil : running.adminURL,
            tls: tls,
            token: configuration.admin.token,
            now: now
        )
        .examine()
        return Diagnosis(findings + store.findings + running.findings + credentials)
    }
}
