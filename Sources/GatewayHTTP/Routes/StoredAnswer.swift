import EventLoopHTTP
import HTTPTypes
import NIOCore

/// An answer as repeats of its request get it: status, the fields that belong to its content, and the body; for logs, its
/// code as well.
///
/// What belongs to one request alone, its id and what is left of quotas, is no part of it.
struct StoredAnswer {
    /// Rises when the layout changes.
    private static let version: UInt8 = 2
    /// The layout before answers had their code; such answers may be kept yet.
    private static let versionWithoutCode: UInt8 = 1

    let response: HTTPServerResponse

    /// An answer that was given.
    init(_ response: HTTPServerResponse) {
        self.response = response
    }

    /// The answer of some bytes; `nil` for bytes that no answer has.
    init?(_ bytes: [UInt8]) {
        var buffer = ByteBuffer(bytes: bytes)
        guard let version = buffer.readInteger(as: UInt8.self),
            version == Self.version || version == Self.versionWithoutCode,
            let status = buffer.readInteger(as: UInt16.self),
            let fieldCount = buffer.readInteger(as: UInt16.self)
        else { return nil }
        var headers = HTTPHeaderLines()
        for _ in 0..<fieldCount {
            guard let name = buffer.readText().flatMap({ HTTPField.Name($0) }), let value = buffer.readText() else {
                return nil
            }
            headers.append(HTTPFieldKey(name), value)
        }
        var code = ""
        if version == Self.version {
            guard let text = buffer.readText() else { return nil }
            code = text
        }
        var response = HTTPServerResponse(
            status: HTTPResponse.Status(code: Int(status)),
            headers: headers,
            body: buffer
        )
        response.code = code.isEmpty ? nil : code
        self.response = response
    }

    /// The answer as bytes.
    var bytes: [UInt8] {
        var buffer = ByteBuffer()
        let fields = self.response.headers.fields
        buffer.reserveCapacity(128 + self.response.body.readableBytes)
        buffer.writeInteger(Self.version)
        buffer.writeInteger(UInt16(clamping: self.response.status.code))
        buffer.writeInteger(UInt16(clamping: fields.count))
        for field in fields {
            buffer.writeText(field.name.rawName)
            buffer.writeText(field.value)
        }
        buffer.writeText(self.response.code ?? "")
        buffer.writeImmutableBuffer(self.response.body)
        return Array(buffer.readableBytesView)
    }
}

extension ByteBuffer {
    fileprivate mutating func writeText(_ text: String) {
        self.writeInteger(UInt16(clamping: text.utf8.count))
        self.writeString(text)
    }

    fileprivate mutating func readText() -> String? {
        self.readInteger(as: UInt16.self).flatMap { self.readString(length: Int($0)) }
    }
}
