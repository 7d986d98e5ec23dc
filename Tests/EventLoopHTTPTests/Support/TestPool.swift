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
        // Long enough for a busy machine; tests of deadlines set their own.
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

    /// Sends a request with a long deadline and no limit of its own on the response.
    func answer(_ path: String = "/", body: ByteBuffer = ByteBuffer()) async throws -> HTTPClientResponse {
        var request = HTTPClientRequest(method: body.readableBytes == 0 ? .get : .post, path: path, body: body)
        request.maxResponseBodyBytes = .max
        return try await self.execute(request, deadline: .now() + .seconds(600))
    }

    /// Checks that a request gets 200.
    func expectSuccess(_ path: String = "/") async throws {
        let response = try await self.answer(path)
        #expect(response.status == .ok)
    }

    /// Returns the error of a request that must fail.
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
