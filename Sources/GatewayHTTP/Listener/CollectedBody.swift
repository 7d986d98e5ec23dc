import HTTPTypes
import Hummingbird
import NIOConcurrencyHelpers
import NIOCore

/// Gathers what a response writes into one buffer.
struct CollectedBody: ResponseBodyWriter {
    let buffer = NIOLockedValueBox(ByteBuffer())

    func write(_ buffer: ByteBuffer) async throws {
        self.buffer.withLockedValue { collected in
            if collected.readableBytes == 0 {
                collected = buffer
            } else {
                collected.writeImmutableBuffer(buffer)
            }
        }
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
