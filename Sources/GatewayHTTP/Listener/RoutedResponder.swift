package import EventLoopHTTP
import FCMModel
import Hummingbird
import Logging
import NIOConcurrencyHelpers
import NIOCore

/// Lets Hummingbird's router answer for the gateway's own server.
package struct RoutedResponder: HTTPServerResponder {
    /// What is served through the router, and what it knows of the routes beside it.
    let routes: [ServedRoute]
    private let responder: any HTTPResponder<GatewayRequestContext>
    private let logger: Logger

    init(responder: any HTTPResponder<GatewayRequestContext>, routes: [ServedRoute], logger: Logger) {
        self.routes = routes
        self.responder = responder
        self.logger = logger
    }

    /// Answers a request.
    package func respond(to request: HTTPServerRequest) async -> HTTPServerResponse {
        let context = GatewayRequestContext(
            source: GatewayRequestSource(
                logger: self.logger,
                body: request.body,
                remoteAddress: request.connection.remoteAddress,
                clientNames: request.connection.clientNames,
                receivedAt: .now,
                lag: request.lag
            )
        )
        do {
            let response = try await self.responder.respond(
                to: Request(head: request.head.httpRequest, body: RequestBody(buffer: request.body)),
                context: context
            )
            var answer = try await HTTPServerResponse(response)
            answer.isPaced = context.notes.withLockedValue { $0.isShed }
            return answer
        } catch {
            self.logger.error("A request failed outside its middleware", metadata: ["error": "\(type(of: error))"])
            return Refusal(.internalError).response
        }
    }
}

extension HTTPServerResponse {
    /// Gathers a routed answer.
    fileprivate init(_ response: Response) async throws {
        let body = CollectedBody()
        try await response.body.write(body)
        self.init(
            status: response.status,
            headers: HTTPHeaderLines(response.headers),
            body: body.buffer.withLockedValue { $0 }
        )
    }
}

extension Response {
    /// An answer of the gateway's own as Hummingbird's.
    init(_ response: HTTPServerResponse) {
        self.init(
            status: response.status,
            headers: response.headers.fields,
            body: ResponseBody(byteBuffer: response.body)
        )
    }
}
