import EventLoopHTTP
import FCMModel
import HTTPTypes

extension HTTPServerResponse {
    /// A legacy answer on its way out.
    init(_ reply: LegacyReply) {
        var headers: HTTPHeaderLines = [.contentType: reply.contentType]
        if let retryAfter = reply.retryAfter { headers.append(.retryAfter, String(retryAfter)) }
        switch reply.status {
        case 401: headers.append(.wwwAuthenticate, "Bearer")
        case 415: headers.append(.acceptEncoding, "identity")
        default: break
        }
        self.init(status: HTTPResponse.Status(code: reply.status), headers: headers, body: reply.body)
        self.code = reply.code?.rawValue
    }
}
