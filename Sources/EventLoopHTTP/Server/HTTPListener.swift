import Logging
import NIOCore

/// A listening socket that can be closed without a reset for anybody.
///
/// To a client, a connection is there as soon as the system has answered its handshake, and its request may be on the
/// way while the connection still waits to be accepted. A socket that is closed outright resets all of those.
struct HTTPListener: Sendable {
    let channel: any Channel
    /// The loops that the accepted connections are spread over.
    let eventLoopGroup: any EventLoopGroup
    /// How long a handshake that has begun may take.
    let settlingTime: TimeAmount
    let logger: Logger

    /// Closes the socket once everybody who got through has been accepted.
    ///
    /// From the start of this on, handshakes stay unanswered. A client's system repeats its own after a second and is
    /// refused then, so that nobody takes the server for one that serves.
    ///
    /// - Returns: when no connection comes any more, and each one that came has been set up.
    func close() async {
        guard self.channel.isActive else { return }
        let eventLoop = self.channel.eventLoop
        let isFiltered = try? await eventLoop.submit { HandshakeFilter.attach(to: self.channel) }.get()
        if isFiltered == false {
            self.logger.debug("Connections that come while the listener closes may be reset.")
        }
        try? await eventLoop.scheduleTask(in: self.settlingTime) {}.futureResult.get()
        // Connections are set up by tasks of their loops: those that were there before this one have run when it has.
        for eventLoop in self.eventLoopGroup.makeIterator() {
            try? await eventLoop.submit {}.get()
        }
        try? await self.channel.close()
    }
}
