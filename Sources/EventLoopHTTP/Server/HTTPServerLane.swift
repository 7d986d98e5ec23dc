import NIOCore

/// What a server keeps on one event loop.
final class HTTPServerLane: Sendable {
    let executor: EventLoopTaskExecutor
    private let connections: NIOLoopBoundBox<[ObjectIdentifier: HTTPServerConnection]>

    init(eventLoop: any EventLoop) {
        self.executor = EventLoopTaskExecutor(eventLoop: eventLoop)
        self.connections = .makeBoxSendingValue([:], eventLoop: eventLoop)
    }

    var eventLoop: any EventLoop {
        self.executor.eventLoop
    }

    /// Remembers an open connection; on the loop only.
    func add(_ connection: HTTPServerConnection) {
        self.connections.value[ObjectIdentifier(connection)] = connection
    }

    /// Forgets a connection that has closed; on the loop only.
    func remove(_ connection: HTTPServerConnection) {
        self.connections.value[ObjectIdentifier(connection)] = nil
    }

    /// Closes the connections that serve no request, from any thread.
    func closeIdle() {
        self.eventLoop.execute {
            for connection in self.connections.value.values {
                connection.closeIfIdle()
            }
        }
    }

    /// Closes every connection, from any thread.
    func closeAll() {
        self.eventLoop.execute {
            for connection in self.connections.value.values {
                connection.abort()
            }
        }
    }
}
