import EventLoopHTTP
import GatewayCore
import GatewayUpstream

extension HTTPClientConfiguration {
    /// One that waits for connections for as long as a test may take, however busy the machine is.
    static var patient: HTTPClientConfiguration {
        var configuration = HTTPClientConfiguration()
        configuration.connectTimeout = .seconds(600)
        return configuration
    }
}

extension UpstreamSettings {
    /// Settings whose attempts may take as long as a test, and what it changes of them.
    static func sample(
        tokenHosts: TokenHosts? = nil,
        client: HTTPClientConfiguration = HTTPClientConfiguration(),
        _ change: (inout UpstreamConfiguration) -> Void = { _ in }
    ) -> UpstreamSettings {
        var configuration = UpstreamConfiguration()
        configuration.timeout = .seconds(600)
        change(&configuration)
        return UpstreamSettings(configuration, tokenHosts: tokenHosts, client: client)
    }
}
