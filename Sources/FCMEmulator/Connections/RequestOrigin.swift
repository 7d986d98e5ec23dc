import NIOCore
import NIOHTTP2
import NIOHTTPTypesHTTP2

/// The connection a request came by, and its stream if that is HTTP/2; what faults on the wire act upon.
struct RequestOrigin: Sendable {
    /// One request's part of an HTTP/2 connection.
    struct Stream: Sendable {
        let id: HTTP2StreamID
        let channel: any Channel
    }

    /// The connection's number.
    let connectionID: Int

    /// The TCP connection.
    let connection: any Channel

    /// The stream; nil with HTTP/1.1.
    let stream: Stream?

    /// The stream's number on its connection; nil with HTTP/1.1.
    var streamID: Int? { self.stream.map { Int($0.id) } }

    /// Resets the TCP connection, with all its streams.
    func reset() async {
        try? await self.connection.triggerUserOutboundEvent(SocketReset.Event()).get()
    }

    /// Declares the request as not processed: its stream is refused, or an HTTP/1.1 connection is reset.
    func refuse() async {
        guard let stream = self.stream else { return await self.reset() }
        let refusal = NIOHTTP2FramePayloadToHTTPEvent.reset(code: .refusedStream)
        try? await stream.channel.triggerUserOutboundEvent(refusal).get()
    }

    /// Has the connection closed once its open requests are answered.
    ///
    /// - Parameter isRefused: whether this request is declared as not processed.
    func goAway(refusing isRefused: Bool) async {
        if let stream = self.stream {
            let command = ConnectionCommand.goAway(refusing: isRefused ? stream.id : nil)
            try? await self.connection.triggerUserOutboundEvent(command).get()
        } else if isRefused {
            await self.reset()
        } else {
            self.connection.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
    }
}
