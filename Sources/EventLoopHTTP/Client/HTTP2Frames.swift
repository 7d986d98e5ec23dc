import NIOCore
import NIOHTTP2

/// A pool's configuration in HTTP/2 terms, computed once.
struct HTTP2ClientSettings: Sendable {
    /// The streams assumed if the peer's settings don't say. RFC 9113, section 6.5.2, asks peers to allow as many.
    static let defaultStreams = 100
    /// The window of a whole connection, in bytes: the data of all its streams that may be in transit.
    static let connectionWindowBytes = 4 * 1024 * 1024
    /// A connection's initial window (RFC 9113, section 6.9.2).
    static let initialConnectionWindowBytes = 65_535
    /// The number of reset streams whose late frames are ignored.
    private static let rememberedResets = 1024
    /// The resets that a peer may send within half a minute. Refusals come in bursts.
    private static let resetsPerHalfMinute = 4096

    let responseLimits: HTTP2ResponseReader.Limits
    let livenessLimits: HTTP2Liveness.Limits
    private let maxStreamsPerConnection: Int
    /// The window of one stream, in bytes. A usual answer within its limit never waits for more window.
    ///
    /// If a request allows a larger answer, the window grows as the answer arrives.
    let streamWindowBytes: Int
    private let maxHeaderListBytes: Int

    init(_ configuration: HTTPClientConfiguration) {
        self.responseLimits = HTTP2ResponseReader.Limits(
            maxHeadBytes: configuration.maxResponseHeadBytes,
            maxFields: configuration.maxResponseFields,
            maxBodyBytes: configuration.maxResponseBodyBytes
        )
        self.livenessLimits = HTTP2Liveness.Limits(configuration)
        self.maxStreamsPerConnection = configuration.http2.maxStreamsPerConnection
        let usualBytes = min(configuration.maxResponseBodyBytes, HTTPClientRequest.usualResponseBodyBytes)
        self.streamWindowBytes = max(65_535, usualBytes + 16_384)
        // A list beyond the announced size ends the connection. A list beyond our limit ends only its stream.
        self.maxHeaderListBytes = 2 * configuration.maxResponseHeadBytes
    }

    func streams(allowed: Int?) -> Int {
        min(allowed ?? Self.defaultStreams, self.maxStreamsPerConnection)
    }

    func makeFrameHandler() -> NIOHTTP2Handler {
        var connection = NIOHTTP2Handler.ConnectionConfiguration()
        connection.initialSettings = [
            HTTP2Setting(parameter: .enablePush, value: 0),
            HTTP2Setting(parameter: .initialWindowSize, value: self.streamWindowBytes),
            HTTP2Setting(parameter: .maxHeaderListSize, value: self.maxHeaderListBytes),
        ]
        // NIO's field checks cost a twelfth of a whole send. Requests are made of checked parts, and
        // `HTTP2ResponseReader` checks answers.
        connection.headerBlockValidation = .disabled
        connection.maximumRecentlyResetStreams = Self.rememberedResets
        connection.maximumSequentialEmptyDataFrames = 8
        var stream = NIOHTTP2Handler.StreamConfiguration()
        stream.streamResetFrameRateLimit.maximumCount = Self.resetsPerHalfMinute
        return NIOHTTP2Handler(mode: .client, connectionConfiguration: connection, streamConfiguration: stream)
    }
}

/// Collects the frames between two flushes in one buffer.
///
/// Frames arrive in pieces: nine bytes, then a few dozen or hundred. Each write would become a TLS record of its own. A
/// buffer as large as a record holds the requests of many streams instead.
final class HTTP2WriteGatherer: ChannelOutboundHandler {
    typealias OutboundIn = IOData
    typealias OutboundOut = ByteBuffer

    /// The size of a TLS record, in bytes.
    private static let recordBytes = 16 * 1024
    /// Pieces of at least this size, in bytes, are not copied.
    private static let uncopiedBytes = 8 * 1024

    private var gathered = ByteBuffer()

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard promise == nil, case .byteBuffer(let bytes) = self.unwrapOutboundIn(data) else {
            self.emit(context)
            context.write(data, promise: promise)
            return
        }
        if bytes.readableBytes >= Self.uncopiedBytes {
            self.emit(context)
            context.write(self.wrapOutboundOut(bytes), promise: nil)
            return
        }
        if self.gathered.readableBytes + bytes.readableBytes > Self.recordBytes {
            self.emit(context)
        }
        if self.gathered.readableBytes == 0 {
            self.gathered = context.channel.allocator.buffer(capacity: max(1024, bytes.readableBytes))
        }
        self.gathered.writeImmutableBuffer(bytes)
    }

    func flush(context: ChannelHandlerContext) {
        self.emit(context)
        context.flush()
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        self.emit(context)
        context.close(mode: mode, promise: promise)
    }

    private func emit(_ context: ChannelHandlerContext) {
        guard self.gathered.readableBytes > 0 else { return }
        let bytes = self.gathered
        self.gathered = ByteBuffer()
        context.write(self.wrapOutboundOut(bytes), promise: nil)
    }
}
