import EventLoopHTTP
import GatewayTestKit
import HTTPTypes
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Testing

extension HTTPClientPool {
    /// A pool for an origin of this machine, on one event loop, that trusts the tests' certificate.
    static func make(
        _ origin: String,
        tls: TLSConfiguration? = try? TestCertificate.client(),
        on eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton.next(),
        configure: (inout HTTPClientConfiguration) -> Void = { _ in }
    ) throws -> HTTPClientPool {
        var configuration = HTTPClientConfiguration(tls: tls)
        // Only tests of the deadline meet it, however busy the machine is.
        configuration.connectTimeout = .seconds(600)
        configuration.http2.pingTimeout = .seconds(600)
        configure(&configuration)
        return try HTTPClientPool(
            origin: try #require(HTTPOrigin(origin)),
            configuration: configuration,
            eventLoopGroup: eventLoopGroup,
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

    /// The error an exchange ends with, which has to be one.
    func failedExchange(
        _ request: HTTPClientRequest = HTTPClientRequest(method: .get, path: "/"),
        within amount: TimeAmount = .seconds(600)
    ) async throws -> HTTPClientError {
        try await #require(throws: HTTPClientError.self) {
            try await self.execute(request, deadline: .now() + amount)
        }
    }
}

extension RawServer {
    /// A pool for this server, shut down when the server stops.
    func pool(
        _ scheme: String = "http",
        configure: (inout HTTPClientConfiguration) -> Void = { _ in }
    ) throws -> HTTPClientPool {
        let pool = try HTTPClientPool.make("\(scheme)://127.0.0.1:\(self.port)", configure: configure)
        self.whenStopped { await pool.shutdown() }
        return pool
    }
}
