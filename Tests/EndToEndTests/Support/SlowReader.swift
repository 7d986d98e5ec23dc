import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A client that sends and never reads.
enum SlowReader {
    /// Connects, with so little room on the way that a server notices soon.
    static func connect(port: Int) async throws -> any Channel {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: false)
            .channelOption(.socketOption(.so_rcvbuf), value: 4_096)
            .channelOption(.tcpOption(.init(rawValue: TCP_MAXSEG)), value: 536)
            .connect(host: "127.0.0.1", port: port)
            .get()
    }
}
