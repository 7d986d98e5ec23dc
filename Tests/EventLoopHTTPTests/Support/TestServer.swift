import EventLoopHTTP
import HTTPTypes
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// A responder that calls a closure.
struct ClosureResponder: HTTPServerResponder {
    let answer: @Sendable (HTTPServerRequest) async -> HTTPServerResponse

    func respond(to request: HTTPServerRequest) async -> HTTPServerResponse {
        await self.answer(request)
    }
}

/// Echoes method, path and body, and records the paths.
final class EchoResponder: HTTPServerResponder {
    private let seen = Mutex<[String]>([])

    var paths: [String] {
        self.seen.withLock { $0 }
    }

    func respond(to request: HTTPServerRequest) async -> HTTPServerResponse {
        let path = request.head.path
        self.seen.withLock { $0.append(path) }
        return HTTPServerResponse(
            status: .ok,
            headers: [.contentType: "text/plain"],
            body: ByteBuffer(string: "\(request.head.method) \(path) \(String(buffer: request.body))")
        )
    }
}

/// Runs a server on a free port for the length of a test.
func withServer<Result>(
    _ responder: any HTTPServerResponder,
    on eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
    configure: (inout HTTPServerConfiguration) -> Void = { _ in },
    _ body: (HTTPServer, Int) async throws -> Result
) async throws -> Result {
    var configuration = HTTPServerConfiguration()
    // Long enough for a busy machine; tests of deadlines set their own.
    configuration.headTimeout = .seconds(600)
    configuration.bodyTimeout = .seconds(600)
    configuration.writeStallTimeout = .seconds(600)
    configure(&configuration)
    let server = HTTPServer(
        configuration: configuration,
        responder: responder,
        eventLoopGroup: eventLoopGroup,
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    )
    try await server.start()
    do {
        let result = try await body(server, server.port ?? 0)
        await server.shutdown(grace: .zero)
        return result
    } catch {
        await server.shutdown(grace: .zero)
        throw error
    }
}

/// Runs a server with one connection to it for the length of a test.
func withConnection(
    _ responder: any HTTPServerResponder,
    configure: (inout HTTPServerConfiguration) -> Void = { _ in },
    _ body: (RawConnection) async throws -> Void
) async throws {
    try await withServer(responder, configure: configure) { _, port in
        try await body(try await RawConnection.open(port: port))
    }
}
