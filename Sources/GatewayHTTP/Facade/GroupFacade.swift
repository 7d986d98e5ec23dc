import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

/// Manages device groups as FCM does: `POST` and `GET /fcm/notification`.
///
/// Names, keys and errors are FCM's own; only the credential and the sender id are the gateway's (G-PROJECT).
struct GroupFacade: Sendable {
    /// The route's template, for metrics and logs.
    static let template = GroupRequestEncoder.path
    /// The methods that are served there.
    static let methods = ["GET", "POST"]
    private static let path = Array(Self.template.utf8)

    let exchange: FacadeExchange
    let groups: DeviceGroups

    /// Whether a path is this route's, by whatever method.
    static func serves(_ path: [UInt8]) -> Bool {
        path.starts(with: Self.path) && (path.count == Self.path.count || path[Self.path.count] == UInt8(ascii: "?"))
    }

    /// Answers a request.
    func respond(to request: HTTPServerRequest) async -> HTTPServerResponse {
        let arrival = self.exchange.began(request)
        let reply: FacadeExchange.Reply
        switch self.reading(of: request, arrival) {
        case .forwarding(let groupRequest, let caller):
            if let reason = self.exchange.gate.enter(caller.principal, lag: request.lag) {
                reply = self.exchange.shed(reason, in: .groups, principal: caller.principal)
            } else {
                let answer = await self.answer(groupRequest, caller)
                self.exchange.gate.leave(caller.principal)
                reply = FacadeExchange.Reply(response: HTTPServerResponse(answer), principal: caller.principal)
            }
        case .answered(let answer):
            reply = answer
        }
        return self.exchange.finished(reply, to: request, route: Self.template, arrival)
    }

    private func answer(_ request: GroupRequest, _ caller: GroupCaller) async -> LegacyReply {
        do throws(Refusal) {
            return LegacyReply(try await self.groups.forward(request, by: caller))
        } catch {
            return .groupsUnavailable(error.code, retryAfter: error.retryAfter)
        }
    }

    /// What a request turned out to be.
    private enum Reading {
        case forwarding(GroupRequest, GroupCaller)
        case answered(FacadeExchange.Reply)
    }

    private func reading(of request: HTTPServerRequest, _ arrival: RequestArrival) -> Reading {
        if let reason = self.exchange.gate.refusal(of: request) {
            return .answered(self.exchange.shed(reason, in: .groups))
        }
        let fields = request.head.fields
        guard request.head.method == .post || request.head.method == .get else {
            let reply = LegacyReply.text(status: 405, "Method Not Allowed", code: .methodNotAllowed)
            var response = HTTPServerResponse(reply)
            response.headers.append(.allow, Self.methods.joined(separator: ", "))
            return .answered(FacadeExchange.Reply(response: response))
        }
        let key = fields.bytes(of: .authorization).flatMap(LegacyKey.bytes(in:))
        guard let principal = self.exchange.principal(of: request, key: key, arrival) else {
            return .answered(FacadeExchange.Reply(response: HTTPServerResponse(.unauthorized(.unauthenticated))))
        }
        if let reason = self.exchange.gate.refusal(of: request, from: principal) {
            return .answered(self.exchange.shed(reason, in: .groups, principal: principal))
        }
        let tenant = principal.profile.tenant
        let answered = { (reply: LegacyReply) -> Reading in
            .answered(FacadeExchange.Reply(response: HTTPServerResponse(reply), principal: principal))
        }
        let senderID = fields[.projectID]
        guard principal.has(.manageDeviceGroups), senderID == nil || senderID == tenant.senderID else {
            return answered(.unauthorized(.forbidden))
        }
        do throws(Refusal) {
            let deadline = try self.exchange.deadline(of: request, arrival)
            let origin = self.exchange.origin(of: request, arrival)
            let caller = GroupCaller(principal: principal, origin: origin, deadline: deadline)
            return .forwarding(try Self.groupRequest(in: request), caller)
        } catch {
            return answered(LegacyReply(refusingGroupRequest: error))
        }
    }

    private static func groupRequest(in request: HTTPServerRequest) throws(Refusal) -> GroupRequest {
        guard request.head.method == .post else {
            let query = request.head.pathBytes.dropFirst(Self.path.count + 1)
            return try GroupRequestDecoder.decode(query: ByteBuffer(bytes: query))
        }
        guard !FacadeExchange.isEncoded(request) else {
            throw Refusal(.unsupportedMediaType, "The body must be sent without Content-Encoding")
        }
        return try GroupRequestDecoder.decode(request.body, contentType: request.head.fields[.contentType])
    }
}
