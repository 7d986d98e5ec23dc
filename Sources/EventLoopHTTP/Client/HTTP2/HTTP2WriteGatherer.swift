import NIOCore

/// Puts frames that are written between two flushes into one buffer.
///
/// Frames come in pieces: nine bytes, then a few dozen or a few hundred. Each write would become an encrypted record of
/// its own. A buffer as large as a record holds the requests of many streams instead.
final class HTTP2WriteGatherer: ChannelOutboundHandler {
    typealias OutboundIn = IOData
    typealias OutboundOut = ByteBuffer

    /// What fits one TLS record, in bytes.
    private static let recordBytes = 16 * 1024
    /// Pieces from this size on are not copied, in bytes.
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
