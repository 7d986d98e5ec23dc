import NIOCore
import NIOHTTP2

/// Drops what a client sends for streams above the last one that GOAWAY named.
///
/// Until it has read GOAWAY a client goes on beginning streams, whose frames are to be passed over (RFC 9113, 6.8). The
/// HTTP/2 handler behind takes them for errors and gives up the streams that it should finish. No header block that
/// counts comes after a dropped one, so that the shared table of header compression may be left behind.
final class LateFrameFilter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private static let prefaceBytes = 24
    private static let frameHeaderBytes = 9

    /// The last stream that GOAWAY named; `nil` until there was one.
    private var last: HTTP2StreamID?
    private var isBehindPreface = false
    private var unread: ByteBuffer?

    /// Passes over all later streams from now on; a lower number than before counts.
    func drop(after last: HTTP2StreamID) {
        self.last = min(last, self.last ?? .maxID)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        if var unread = self.unread {
            unread.writeBuffer(&bytes)
            bytes = unread
        }
        while let frame = self.next(&bytes) {
            guard !self.isLate(frame) else { continue }
            context.fireChannelRead(self.wrapInboundOut(frame))
        }
        self.unread = bytes.readableBytes > 0 ? bytes : nil
    }

    /// Cuts the connection's preface off the bytes, or a whole frame.
    private func next(_ bytes: inout ByteBuffer) -> ByteBuffer? {
        guard self.isBehindPreface else {
            let preface = bytes.readSlice(length: Self.prefaceBytes)
            self.isBehindPreface = preface != nil
            return preface
        }
        let start = bytes.readerIndex
        guard let high: UInt8 = bytes.getInteger(at: start), let low: UInt16 = bytes.getInteger(at: start + 1) else {
            return nil
        }
        return bytes.readSlice(length: Self.frameHeaderBytes + Int(high) << 16 + Int(low))
    }

    private func isLate(_ frame: ByteBuffer) -> Bool {
        guard let last = self.last, let bits: UInt32 = frame.getInteger(at: frame.readerIndex + 5) else { return false }
        return Int(bits & 0x7FFF_FFFF) > Int(last)
    }
}
