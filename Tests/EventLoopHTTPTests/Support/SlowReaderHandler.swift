import NIOCore

/// Makes a peer that reads as little as a test says: what is written waits here and counts as the channel's own.
final class SlowReaderHandler: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var context: ChannelHandlerContext?
    private var unread = 0
    private var promises: [EventLoopPromise<Void>] = []

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        for promise in self.promises {
            promise.fail(ChannelError.ioOnClosedChannel)
        }
        self.promises = []
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        self.unread += self.unwrapOutboundIn(data).readableBytes
        if let promise {
            self.promises.append(promise)
        }
    }

    func flush(context: ChannelHandlerContext) {
        self.show()
    }

    /// The peer reads.
    func read(_ count: Int) {
        self.unread -= count
        self.show()
    }

    /// Has the channel buffer as many bytes as are unread.
    private func show() {
        guard let context = self.context else { return }
        context.flush()
        context.write(NIOAny(ByteBuffer(repeating: 0, count: self.unread)), promise: nil)
    }
}
