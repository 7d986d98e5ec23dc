import HTTPTypes
import NIOCore

extension ByteBuffer {
    /// Bodies up to this size are copied behind their head, so that both leave in one write.
    static let coalescedBodyBytes = 16 * 1024

    /// Writes field lines, leaving out those that frame the message: the writer of the message sets them itself.
    ///
    /// Names are tokens and values hold no line ends, `HTTPField` sees to that, so nothing can be smuggled in here.
    mutating func writeFields(_ fields: HTTPFields) {
        for field in fields where !field.name.framesMessage {
            self.writeString(field.name.rawName)
            self.writeStaticString(": ")
            self.writeString(field.value)
            self.writeStaticString("\r\n")
        }
    }
}

extension HTTPFields {
    /// The bytes these fields take as lines.
    var lineBytes: Int {
        var count = 0
        for field in self {
            count += field.name.rawName.utf8.count + field.value.utf8.count + 4
        }
        return count
    }
}

extension HTTPField.Name {
    /// Whether the field says where a message or its connection ends.
    var framesMessage: Bool {
        switch self.canonicalName {
        case "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "trailer", "te": true
        default: false
        }
    }
}
