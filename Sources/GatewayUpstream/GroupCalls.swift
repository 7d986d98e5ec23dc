import EventLoopHTTP
package import FCMModel
package import GatewayCore
import HTTPTypes

/// Device groups. They are managed at `/fcm/notification` with the credential of the tenant's messages.
extension FCMClient: GroupUpstream {
    /// Makes a request with the tenant's sender id and the credential of its protocol (G-PROJECT).
    package func perform(
        _ request: GroupRequest,
        of profile: TenantProfile,
        deadline: Uptime,
        origin: RequestOrigin
    ) async -> GroupResult {
        guard let senderID = profile.tenant.senderID else {
            return GroupResult(self.missing("no_sender_id", profile.missingForGroups, of: profile, origin))
        }
        do throws(CallFailure) {
            let account = try self.account(of: profile, by: profile.tenant.upstream, origin)
            let context = CallContext(.deviceGroups, by: account, for: profile, origin: origin, deadline: deadline)
            return await self.perform(GroupCall(context: context, content: request, senderID: senderID))
        } catch {
            return GroupResult(error)
        }
    }
}

private struct GroupCall: FCMCall {
    let context: CallContext
    let content: GroupRequest
    let senderID: String

    var route: String { GroupRequestEncoder.path }

    func request(authorizedBy authorization: Authorization) -> HTTPClientRequest {
        let method: HTTPRequest.Method =
            switch self.content {
            case .change: .post
            case .lookUp: .get
            }
        var headers = authorization.olderFields
        headers.append(.projectID, self.senderID)
        return HTTPClientRequest(
            method: method,
            path: GroupRequestEncoder.path(of: self.content),
            headers: headers,
            body: GroupRequestEncoder.body(of: self.content)
        )
    }

    func read(_ response: HTTPClientResponse, now: Int) -> (GroupResult, AnswerSign) {
        let status = response.status.code
        let sign: AnswerSign =
            switch status {
            case 401: .tokenRefused
            case 403: .credentialRefused
            case 429: .excess
            case 500...599: .trouble
            default: .well
            }
        return (GroupResponseReader.read(UpstreamResponse(response), now: now), sign)
    }

    func unanswered(_ failure: CallFailure) -> GroupResult { GroupResult(failure) }
}

extension GroupResult {
    /// A request that was not made or got no answer.
    ///
    /// The change may have been carried out. That makes no difference, since every change can be repeated.
    fileprivate init(_ failure: CallFailure) {
        let kind: GroupFailure.Kind =
            failure.code == .upstreamCredentials ? .upstreamCredentials : .upstreamUnavailable
        self.init(
            .failure(GroupFailure(kind, retryAfter: failure.retryAfter, text: failure.text)),
            upstreamCode: failure.upstreamCode
        )
    }
}
