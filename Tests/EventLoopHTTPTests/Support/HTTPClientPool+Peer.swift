import EventLoopHTTP
import HTTPTypes
import Logging
import NIOCore
import NIOPosix
import Testing

extension HTTPClientPool {
    /// A pool for a peer at a port of this machine, on one event loop.
    static func make(
        port: Int,
        configure: (inout HTTPClientConfiguration) -> Void = { _ in }
    ) throws -> HTTPClientPool {
        var configuration = HTTPClientConfiguration(tls: try TestCertificate.client())
        // Only tests of the deadline meet it, however busy the machine is.
        configuration.connectTimeout = .seconds(600)
        configuration.http2.pingTimeout = .seconds(600)
        configure(&configuration)
        return try HTTPClientPool(
            origin: try #require(HTTPOrigin("https://localhost:\(port)")),
            configuration: configuration,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton.next(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    /// The answer to a request that has all the time it needs.
    func answer(_ path: String = "/", body: ByteBuffer = ByteBuffer()) async throws -> HTTPClientResponse {
        var request = HTTPClientRequest(method: body.readableBytes == 0 ? .get : .post, path: path, body: body)
        request.maxResponseBodyBytes = .max
        return try await self.execute(request, deadline: .now() + .seconds(600))
    }

    /// Checks that a request is answered as it should be.
    func expectSuccess(_ path: String = "/") async throws {
        let response = try await self.answer(path)
        #expect(response.status == .ok)
    }
}
