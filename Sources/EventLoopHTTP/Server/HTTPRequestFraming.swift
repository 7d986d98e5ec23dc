import HTTPTypes

/// What the fields of a request say about the message itself.
struct HTTPRequestFraming {
    private(set) var host: String?
    private(set) var contentLength: String?
    private(set) var transferEncoding: String?
    private(set) var expect: String?
    private(set) var hasUpgrade = false

    enum BodyVerdict {
        case accepted(HTTPBodyFraming)
        case refused(HTTPServerRefusal)
    }

    /// Notes a field that frames the message; refuses a second one of its name.
    mutating func note(_ name: HTTPField.Name, _ value: String) -> HTTPServerRefusal? {
        switch name.canonicalName {
        case "host":
            guard self.host == nil else { return .badRequest(reason: "The Host field is repeated.") }
            self.host = value
        case "content-length":
            guard self.contentLength == nil else {
                return .badRequest(reason: "The Content-Length field is repeated.")
            }
            self.contentLength = value
        case "transfer-encoding":
            guard self.transferEncoding == nil else {
                return .badRequest(reason: "The Transfer-Encoding field is repeated.")
            }
            self.transferEncoding = value
        case "expect":
            guard self.expect == nil else { return .expectationFailed }
            self.expect = value
        case "upgrade":
            self.hasUpgrade = true
        default:
            break
        }
        return nil
    }

    /// How the body ends (RFC 9112, section 6.3), refusing whatever could be read in two ways.
    func body(isHTTP10: Bool) -> BodyVerdict {
        if let transferEncoding {
            guard !isHTTP10 else {
                return .refused(.badRequest(reason: "HTTP/1.0 has no Transfer-Encoding."))
            }
            guard self.contentLength == nil else {
                return .refused(.badRequest(reason: "Content-Length and Transfer-Encoding exclude each other."))
            }
            guard transferEncoding.equalsIgnoringCase("chunked") else {
                return .refused(.unsupportedTransferEncoding)
            }
            return .accepted(.chunked)
        }
        guard let contentLength else { return .accepted(.none) }
        guard !contentLength.isEmpty,
            contentLength.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else {
            return .refused(.badRequest(reason: "The Content-Length field is malformed."))
        }
        // Only digits, so what does not fit an Int is a length beyond any limit.
        guard let length = Int(contentLength) else { return .refused(.bodyTooLarge) }
        return .accepted(length == 0 ? .none : .length(length))
    }
}
