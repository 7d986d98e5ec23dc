import HTTPTypes
import NIOHTTP1

/// Decides what a parsed response head means for its body and its connection, and translates it.
struct HTTPResponseHeadCheck {
    enum Verdict {
        /// An interim answer; the final one follows.
        case informational
        /// The final answer, how its body ends, and whether the connection may serve again.
        case accepted(HTTPClientResponse, framing: HTTPBodyFraming, keepsAlive: Bool)
        case refused(HTTPClientError.Code)
    }

    let maxBodyBytes: Int

    func check(_ head: HTTPResponseHead, method: HTTPRequest.Method) -> Verdict {
        let code = Int(head.status.code)
        switch code {
        case 101:
            // Nobody asked to switch protocols.
            return .refused(.invalidResponse)
        case 100...199:
            return .informational
        case 200...599:
            break
        default:
            return .refused(.invalidResponse)
        }
        var contentLength: String?
        var transferEncoding: String?
        var fields = HTTPFields()
        fields.reserveCapacity(head.headers.count)
        for (name, value) in head.headers {
            guard let name = HTTPField.Name(name) else { return .refused(.invalidResponse) }
            switch name.canonicalName {
            case "content-length":
                guard contentLength == nil else { return .refused(.invalidResponse) }
                contentLength = value
            case "transfer-encoding":
                guard transferEncoding == nil else { return .refused(.invalidResponse) }
                transferEncoding = value
            default:
                break
            }
            fields.append(HTTPField(name: name, value: value))
        }
        let response = HTTPClientResponse(status: HTTPResponse.Status(code: code), headers: fields)
        let keepsAlive = head.isKeepAlive && head.version == .http1_1

        if method == .head || code == 204 || code == 304 {
            return .accepted(response, framing: .none, keepsAlive: keepsAlive)
        }
        if let transferEncoding {
            guard contentLength == nil, head.version == .http1_1, transferEncoding.equalsIgnoringCase("chunked") else {
                return .refused(.invalidResponse)
            }
            return .accepted(response, framing: .chunked, keepsAlive: keepsAlive)
        }
        guard let contentLength else {
            return .accepted(response, framing: .untilClose, keepsAlive: false)
        }
        guard let length = Int(contentLength), length >= 0 else { return .refused(.invalidResponse) }
        guard length <= self.maxBodyBytes else { return .refused(.responseTooLarge) }
        return .accepted(response, framing: length == 0 ? .none : .length(length), keepsAlive: keepsAlive)
    }
}
