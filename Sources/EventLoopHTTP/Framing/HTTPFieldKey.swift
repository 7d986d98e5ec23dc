package import HTTPTypes

/// The name of a field, prepared once for looking it up and for writing it.
package struct HTTPFieldKey: Sendable {
    /// The name in lower case.
    let bytes: [UInt8]
    /// The name as it is written, with the colon and the space behind it.
    let lineStart: [UInt8]
    /// Whether the field says where a message or its connection ends, or when it was made; the writers of messages set
    /// those themselves.
    let framesMessage: Bool

    /// A key for a name.
    package init(_ name: HTTPField.Name) {
        self.bytes = Array(name.canonicalName.utf8)
        self.lineStart = Array("\(name.rawName): ".utf8)
        self.framesMessage =
            switch name.canonicalName {
            case "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "trailer", "te",
                "date":
                true
            default: false
            }
    }

    static let connection = HTTPFieldKey(.connection)
    static let contentLength = HTTPFieldKey(.contentLength)
    static let expect = HTTPFieldKey(.expect)
    static let host = HTTPFieldKey(.host)
    static let transferEncoding = HTTPFieldKey(.transferEncoding)
}

extension HTTPField.Name {
    /// A name that stands in the source.
    ///
    /// - Precondition: it is a token (RFC 9110, section 5.1).
    package init(constant name: StaticString) {
        guard let parsed = HTTPField.Name(name.description) else {
            preconditionFailure("\(name) is no field's name")
        }
        self = parsed
    }
}
