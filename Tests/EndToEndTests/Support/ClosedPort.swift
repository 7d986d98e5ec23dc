import NIOCore
import NIOPosix

/// A port on which nothing listens.
enum ClosedPort {
    /// Lets the system choose a port and gives it back at once.
    static func reserve() async throws -> Int {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0)
            .get()
        let port = channel.localAddress?.port ?? 0
        try await channel.close()
        return port
    }
}
