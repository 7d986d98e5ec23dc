import NIOHTTP2

/// What the emulator tells one of its HTTP/2 connections to do; sent as an outbound event.
enum ConnectionCommand: Sendable, Equatable {
    /// Announce with GOAWAY that no further stream is taken, and close once the open ones have ended.
    ///
    /// The stream to refuse, if there is one, is declared as not processed.
    case goAway(refusing: HTTP2StreamID?)
    /// Announce how many streams the client may have open at once.
    case allow(streams: Int)
}
