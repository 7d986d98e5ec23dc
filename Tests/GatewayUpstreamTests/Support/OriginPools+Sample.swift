import EventLoopHTTP
import Logging
import NIOPosix

@testable import GatewayUpstream

extension OriginPools {
    /// Pools that nobody listens to the logs of.
    static func sample() -> OriginPools {
        OriginPools(
            configuration: .patient,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }
}
