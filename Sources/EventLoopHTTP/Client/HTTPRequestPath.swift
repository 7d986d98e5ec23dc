import NIOCore

/// The path and query of a request as they may stand on the wire.
///
/// Bytes that may not stand there are percent-encoded, and a missing first slash is added: a path can't end its line
/// early, and can't become another field.
struct HTTPRequestPath {
    private let text: String

    init(_ text: String) {
        self.text = text
    }

    /// The path as text.
    var encoded: String {
        guard self.text.utf8.first != UInt8(ascii: "/") || !self.isPlain else { return self.text }
        var bytes = ByteBuffer()
        self.write(to: &bytes)
        return String(buffer: bytes)
    }

    /// Writes the path.
    func write(to bytes: inout ByteBuffer) {
        if self.text.utf8.first != UInt8(ascii: "/") {
            bytes.writeStaticString("/")
        }
        guard !self.isPlain else {
            bytes.writeString(self.text)
            return
        }
        for byte in self.text.utf8 {
            if HTTPGrammar.isTarget(byte) {
                bytes.writeInteger(byte)
            } else {
                bytes.writeStaticString("%")
                bytes.writeInteger(Self.hexDigit(byte >> 4))
                bytes.writeInteger(Self.hexDigit(byte & 0x0F))
            }
        }
    }

    private var isPlain: Bool {
        self.text.utf8.allSatisfy(HTTPGrammar.isTarget)
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}
