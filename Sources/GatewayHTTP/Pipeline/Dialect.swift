import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

/// The protocol in which a surface writes its refusals.
enum Dialect: Int, Sendable, CaseIterable {
    /// Problem details (RFC 9457).
    case rest
    case legacy
    /// `google.rpc.Status`.
    case v1
    case instanceID
    case groups
    /// Pages.
    case console

    /// True if a body with a `Content-Encoding` is refused. A compressed body can expand a thousandfold.
    var refusesEncodedBodies: Bool { self != .rest }

    /// The answer to a refused request; `method_not_allowed` names the methods that are served.
    func response(
        to refusal: Refusal,
        _ request: HTTPServerRequest,
        allow methods: [String] = []
    ) -> HTTPServerResponse {
        let reply: Reply
        switch self {
        case .rest: return refusal.response(allow: methods)
        case .legacy: reply = Self.legacyWriter(request).reply(to: refusal)
        case .v1: reply = V1ReplyWriter.reply(to: refusal)
        case .instanceID: reply = InstanceIDReplyWriter.reply(to: refusal)
        case .groups: reply = GroupReplyWriter.reply(to: refusal)
        case .console: return Self.page(refusal, allow: methods)
        }
        var response = HTTPServerResponse(reply)
        if !methods.isEmpty { response.headers.append(.allow, methods.joined(separator: ", ")) }
        if reply.status == 415 { response.headers.append(.acceptEncoding, "identity") }
        return response
    }

    /// The answer to a failure of the gateway itself: problem details, or a page.
    func response(toFailure refusal: Refusal) -> HTTPServerResponse {
        self == .console ? Self.page(refusal) : refusal.response
    }

    /// A page that says why; without a session the log-in.
    private static func page(_ refusal: Refusal, allow methods: [String] = []) -> HTTPServerResponse {
        guard refusal.code != .unauthenticated else { return ConsolePage(redirectTo: "/console/log-in").response() }
        var response = ConsolePage(refusal).response()
        if !methods.isEmpty { response.headers.append(.allow, methods.joined(separator: ", ")) }
        return response
    }

    private static func legacyWriter(_ request: HTTPServerRequest) -> LegacyReplyWriter {
        LegacyReplyWriter(
            shape: .results(count: 1),
            format: LegacyFormat(contentType: request.head.fields[.contentType]),
            multicastID: LegacyReplyWriter.newMulticastID()
        )
    }

    /// The answer to a shed request; created once per delay.
    func overloaded(retryAfter: Int) -> HTTPServerResponse {
        let rejection = Rejection(code: .overloaded, retryAfter: retryAfter)
        var response =
            switch self {
            case .rest: Refusal(rejection).response
            case .legacy: HTTPServerResponse(LegacyReplyWriter.overloaded(retryAfter: retryAfter))
            case .v1: HTTPServerResponse(V1ReplyWriter.reply(refusing: rejection))
            case .instanceID: HTTPServerResponse(InstanceIDReplyWriter.reply(refusing: Refusal(rejection)))
            case .groups: HTTPServerResponse(GroupReplyWriter.unavailable(.overloaded, retryAfter: retryAfter))
            case .console: Self.page(Refusal(rejection))
            }
        response.isPaced = true
        return response
    }
}

extension LegacyReplyWriter {
    static func newMulticastID() -> Int { Int.random(in: 1..<(1 << 53)) }
}

extension HTTPServerResponse {
    init(status: HTTPResponse.Status = .ok, json body: ByteBuffer) {
        self.init(status: status, headers: .json, body: body)
    }

    /// Makes the answer for a protocol's reply, with the caller's remaining quotas.
    init(_ reply: Reply, _ quotas: [QuotaStatus] = []) {
        var headers = HTTPHeaderLines()
        headers.append(.contentType, reply.contentType)
        if let retryAfter = reply.retryAfter { headers.append(.retryAfter, String(retryAfter)) }
        if reply.status == 401 { headers.append(.wwwAuthenticate, "Bearer") }
        self.init(status: HTTPResponse.Status(code: reply.status), headers: headers, body: reply.body)
        self.code = reply.code?.rawValue
        self.headers.append(quotas)
    }
}
