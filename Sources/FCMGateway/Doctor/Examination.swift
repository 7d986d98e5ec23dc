import GatewayCore
import GatewayService
import GatewayStorage
import GatewayUpstream

/// Everything `doctor` looks at, one check after the other; those that wait for the network run beside each other.
struct Examination: Sendable {
    /// The configuration's file; nil for the environment alone.
    let file: String?
    /// The process's variables.
    let environment: [String: String]
    /// Whether nothing outside of this machine is called.
    let isOffline: Bool
    /// Whether a large store's structure is checked too.
    let isThorough: Bool

    /// Looks at everything.
    func diagnosis() async -> Diagnosis {
        let configured = ConfigurationCheck.examine(ConfigurationInput(file: self.file, environment: self.environment))
        var findings = configured.findings
        findings += FilesCheck.examine(file: self.file, environment: self.environment, configured.configuration)
        findings += EnvironmentCheck.examine(self.environment)
        guard let configuration = configured.configuration else { return Diagnosis(findings) }

        let now = SystemWallClock().now()
        findings += CertificatesCheck.examine(configured.certificates, now: now)
        findings += DataDirectoryCheck.examine(configuration)
        let store = await StoreCheck(configuration: configuration, isThorough: self.isThorough).examine()
        findings += store.findings
        findings += [ClockCheck.finding(newestRecord: store.inspection?.newestRecord, now: now)].compactMap(\.self)
        findings += ResourcesCheck.examine(configuration, .current)
        let listeners = await ListenersCheck(
            configuration: configuration,
            environment: self.environment,
            isStoreServed: store.isServed
        )
        .examine()
        findings += listeners.findings
        let origins = UpstreamCheck.origins(configuration.upstream, store.inspection?.tenants ?? [])
        async let upstream = self.isOffline ? [] : UpstreamCheck(configuration.upstream).examine(origins)
        async let credentials = CredentialsCheck(
            tenants: store.inspection?.tenants ?? [],
            unopened: store.unopened,
            isMasterKeyTried: store.isMasterKeyTried,
            plainHTTP: configuration.upstream.tokenHosts.plainHTTP,
            gateway: self.isOffline ? nil : listeners.adminURL,
            token: configuration.admin.token,
            now: now
        )
        .examine()
        return Diagnosis(findings + (await upstream) + (await credentials))
    }
}
