import EventLoopHTTP
import Logging
import NIOPosix

@testable import GatewayUpstream

extension OriginPools {
    /// Pools that nobody listens to the logs of.
    static func sample() -> OriginPools {
        var configuration = HTTPClientConfiguration()
        // No test is about it, and the machine may be busy.
        configuration.connectTimeout = .seconds(600)
        return OriginPools(
            configuration: configuration,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }
}
