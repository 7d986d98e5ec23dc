package import Logging
package import NIOCore
import NIOPosix

/// Keep-alive connections to one origin, a set of its own on each event loop.
///
/// A caller pinned to a loop gets a connection of that loop, so its exchange never leaves it. An `https` origin is
/// spoken to in HTTP/2 where it can, which callers do not notice. Nothing is retried here but what a peer said it has
/// not looked at: the error says whether anything was sent, and the caller decides.
package final class HTTPClientPool: Sendable {
    /// Where the requests go.
    package let origin: HTTPOrigin
    private let eventLoopGroup: any EventLoopGroup
    private let lanes: [ObjectIdentifier: HTTPClientLane]

    /// Creates a pool without connections; they are opened as they are needed.
    ///
    /// - Parameters:
    ///   - origin: where the requests go.
    ///   - configuration: how to connect, and the limits.
    ///   - encryption: the configuration's TLS, where that is ready; made for an `https` origin otherwise.
    ///   - eventLoopGroup: the loops connections may live on.
    ///   - logger: used for connections that cannot be opened, at debug level.
    /// - Throws: what is wrong with the TLS configuration.
    package init(
        origin: HTTPOrigin,
        configuration: HTTPClientConfiguration = HTTPClientConfiguration(),
        encryption: HTTPClientEncryption? = nil,
        eventLoopGroup: any EventLoopGroup,
        logger: Logger
    ) throws {
        self.origin = origin
        self.eventLoopGroup = eventLoopGroup
        let core = HTTPClientCore(origin: origin, configuration: configuration, logger: logger)
        let connector =
            switch origin.scheme {
            case .http: HTTPClientConnector(origin: origin, encryption: nil)
            case .https:
                HTTPClientConnector(
                    origin: origin,
                    encryption: try encryption ?? HTTPClientEncryption(configuration)
                )
            }
        var lanes: [ObjectIdentifier: HTTPClientLane] = [:]
        for eventLoop in eventLoopGroup.makeIterator() {
            lanes[ObjectIdentifier(eventLoop)] = HTTPClientLane(
                eventLoop: eventLoop,
                core: core,
                connector: connector
            )
        }
        self.lanes = lanes
    }

    /// Sends a request and returns its final answer, whatever its status.
    ///
    /// - Parameters:
    ///   - request: the request with its whole body.
    ///   - deadline: when to give up, whether still waiting, connecting, sending or reading.
    ///   - eventLoop: whose connections to use; nil for the loop the calling task runs on, or any.
    /// - Returns: the answer with its whole body.
    /// - Throws: why there is none, and whether anything was sent.
    package func execute(
        _ request: HTTPClientRequest,
        deadline: NIODeadline,
        on eventLoop: (any EventLoop)? = nil
    ) async throws(HTTPClientError) -> HTTPClientResponse {
        guard let lane = self.lane(on: eventLoop) else {
            throw HTTPClientError(code: .shutDown, requestSent: false)
        }
        // On its own loop an exchange would be written before its cancellation is heard of.
        guard !Task.isCancelled else { throw HTTPClientError(code: .cancelled, requestSent: false) }
        let exchange = HTTPClientExchange(request: request, deadline: deadline, eventLoop: lane.eventLoop)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                lane.submit(exchange, continuation)
            }
        } onCancel: {
            lane.cancel(exchange)
        }
        return try outcome.get()
    }

    /// Ends every exchange with `shutDown` and closes every connection; later requests are refused.
    package func shutdown() async {
        for lane in self.lanes.values {
            await lane.shutDown()
        }
    }

    /// Closes what no exchange uses; exchanges under way and later ones are served, and nothing is kept for longer than the
    /// idle timeout after them.
    package func closeIdle() {
        for lane in self.lanes.values { lane.closeIdle() }
    }

    private func lane(on eventLoop: (any EventLoop)?) -> HTTPClientLane? {
        if let eventLoop = eventLoop ?? MultiThreadedEventLoopGroup.currentEventLoop,
            let lane = self.lanes[ObjectIdentifier(eventLoop)]
        {
            return lane
        }
        return self.lanes[ObjectIdentifier(self.eventLoopGroup.next())]
    }
}
