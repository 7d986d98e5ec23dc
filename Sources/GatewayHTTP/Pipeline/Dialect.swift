import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

/// The protocol in whose form a surface refuses.
enum Dialect: Int, Sendable, CaseIterable {
    /// Problem details (RFC 9457).
    case rest
    /// The legacy protocol's text, JSON or form.
    case legacy
    /// `google.rpc.Status`.
    case v1
    /// The Instance ID API's errors.
    case instanceID
    /// Legacy device groups' errors.
    case groups

    /// Whether compressed bodies are refused by their field; a body could be a thousand times as large as it looks.
    var refusesEncodedBodies: Bool { self != .rest }

    /// The answer to a request that is refused; `method_not_allowed` names the methods that are served.
    func response(
        to refusal: Refusal,
        _ request: HTTPServerRequest,
        allow methods: [String] = []
    ) -> HTTPServerResponse {
        var response: HTTPServerResponse
        switch self {
        case .rest: return refusal.response(allow: methods)
        case .legacy: response = HTTPServerResponse(Self.legacyReply(to: refusal, request))
        case .v1: response = HTTPServerResponse(Self.v1Reply(to: refusal))
        case .instanceID: response = HTTPServerResponse(Self.instanceIDReply(to: refusal))
        case .groups: response = HTTPServerResponse(Self.groupReply(to: refusal))
        }
        if !methods.isEmpty { response.headers.append(.allow, methods.joined(separator: ", ")) }
        return response
    }

    private static func legacyReply(to refusal: Refusal, _ request: HTTPServerRequest) -> LegacyReply {
        switch refusal.code {
        case .unauthenticated, .forbidden, .auditUnavailable: .unauthorized(refusal.code)
        case .unsupportedMediaType: .text(status: 415, refusal.detail ?? refusal.code.title, code: refusal.code)
        default:
            LegacyReply(
                refusing: refusal,
                format: LegacyFormat(contentType: request.head.fields[.contentType]),
                shape: .results(count: 1),
                multicastID: LegacyReplyWriter.newMulticastID()
            )
        }
    }

    private static func v1Reply(to refusal: Refusal) -> V1Reply {
        switch refusal.code {
        case _ where !refusal.fields.isEmpty: V1Reply(refusing: refusal)
        case .methodNotAllowed: .methodNotAllowed
        case .badRequest, .unsupportedMediaType, .malformedJSON, .invalidTarget, .invalidField:
            .badRequest(refusal.detail ?? refusal.code.title, code: refusal.code)
        default: V1Reply(refusing: refusal.rejection)
        }
    }

    private static func instanceIDReply(to refusal: Refusal) -> InstanceIDReply {
        var refusal = refusal
        switch refusal.code {
        case .unauthenticated, .forbidden, .auditUnavailable, .methodNotAllowed: refusal.detail = nil
        default: refusal.detail = refusal.detail ?? refusal.code.title
        }
        return InstanceIDReply(refusal)
    }

    private static func groupReply(to refusal: Refusal) -> LegacyReply {
        switch refusal.code {
        case .unauthenticated, .forbidden, .auditUnavailable: .unauthorized(refusal.code)
        case .methodNotAllowed: .text(status: 405, "Method Not Allowed", code: refusal.code)
        default: LegacyReply(refusingGroupRequest: refusal)
        }
    }

    /// The answer to a request that is not taken on; made once for each delay.
    func overloaded(retryAfter: Int) -> HTTPServerResponse {
        let rejection = Rejection(code: .overloaded, retryAfter: retryAfter)
        var response =
            switch self {
            case .rest: Refusal(rejection).response
            case .legacy: HTTPServerResponse(LegacyReply.overloaded(retryAfter: retryAfter))
            case .v1: HTTPServerResponse(V1Reply(refusing: rejection))
            case .instanceID: HTTPServerResponse(InstanceIDReply(Refusal(rejection)))
            case .groups: HTTPServerResponse(LegacyReply.groupsUnavailable(.overloaded, retryAfter: retryAfter))
            }
        response.isPaced = true
        return response
    }
}

extension LegacyReplyWriter {
    /// A number for the answer to one request.
    static func newMulticastID() -> Int { Int.random(in: 1..<(1 << 53)) }
}

extension HTTPServerResponse {
    /// A JSON answer.
    init(status: HTTPResponse.Status = .ok, json body: ByteBuffer) {
        self.init(status: status, headers: [.contentType: "application/json"], body: body)
    }

    /// A legacy answer on its way out.
    init(_ reply: LegacyReply) {
        self.init(
            reply.status,
            reply.contentType,
            retryAfter: reply.retryAfter.map { String($0) },
            reply.body,
            reply.code,
            namesEncoding: true
        )
    }

    /// A v1 answer on its way out.
    init(_ reply: V1Reply) {
        self.init(reply.status, reply.contentType, retryAfter: reply.retryAfter, reply.body, reply.code)
    }

    /// An answer of the Instance ID API's on its way out.
    init(_ reply: InstanceIDReply) {
        self.init(
            reply.status,
            "application/json; charset=UTF-8",
            retryAfter: reply.retryAfter.map { String($0) },
            reply.body,
            reply.code,
            namesEncoding: true
        )
    }

    private init(
        _ status: Int,
        _ contentType: String,
        retryAfter: String?,
        _ body: ByteBuffer,
        _ code: OutcomeCode?,
        namesEncoding: Bool = false
    ) {
        var headers: HTTPHeaderLines = [.contentType: contentType]
        if let retryAfter { headers.append(.retryAfter, retryAfter) }
        if status == 401 { headers.append(.wwwAuthenticate, "Bearer") }
        if namesEncoding, status == 415 { headers.append(.acceptEncoding, "identity") }
        self.init(status: HTTPResponse.Status(code: status), headers: headers, body: body)
        self.code = code?.rawValue
    }
}
