import EventLoopHTTP
import GatewayCore
import Metrics

/// The parts of a gateway that take other settings while they work.
struct ReloadableParts: Sendable {
    /// Knows the limits of tenants that have none of their own.
    let directory: Directory
    /// Serves tenants' services.
    let dataServer: HTTPServer
    /// Serves operators.
    let adminServer: HTTPServer
    /// How long a caller waits at most.
    let requestDeadline: DurationSetting
    /// How long one call to FCM may take.
    let attemptTimeout: DurationSetting
    /// Where access tokens may be asked for.
    let tokenHosts: Setting<TokenHosts>
    /// Says whether the last reload was good.
    let lastReload: Meter
}
