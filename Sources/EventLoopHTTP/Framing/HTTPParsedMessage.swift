import NIOCore

/// What the parser made of the bytes it was fed, collected until the connection looks at it.
struct HTTPParsedMessage<Head> {
    /// The head, once it was complete.
    var head: Head?
    /// The body so far, without its transfer coding.
    private(set) var body = ByteBuffer()
    /// Whether the parser saw the message end.
    var isComplete = false
    /// Why the parser gave up.
    var error: (any Error)?

    /// Adds a piece of the body; the first is kept as it is, which for most bodies spares the copy.
    mutating func append(_ bytes: ByteBuffer) {
        if self.body.readableBytes == 0 {
            self.body = bytes
        } else {
            self.body.writeImmutableBuffer(bytes)
        }
    }
}
