import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

/// Messages by the legacy protocol: one `POST /fcm/send` for each.
extension FCMClient {
    /// The legacy protocol knows no installation ids, no negation and at most two operators in a condition.
    static func legacyRefusal(of target: Target) -> Refusal? {
        switch target {
        case .token, .tokens, .topic, .notificationKey, .deviceGroup:
            nil
        case .installation, .installations:
            Refusal(
                .invalidTarget,
                "This tenant sends by the legacy protocol, which supports registration tokens only",
                field: target.kind.rawValue
            )
        case .condition(let condition):
            condition.fits(.legacy)
                ? nil
                : Refusal(
                    .invalidField,
                    "This tenant sends by the legacy protocol: at most two operators and no negation",
                    field: target.kind.rawValue
                )
        }
    }

    func sendByLegacy(_ call: UpstreamCall) async -> SendResult {
        do throws(CallFailure) {
            return await self.perform(try self.prepareLegacy(call))
        } catch {
            return SendResult(error)
        }
    }

    /// Returns the request that ``sendByLegacy(_:)`` makes, without its server key.
    func legacyRequests(of call: UpstreamCall) -> [HTTPClientRequest] {
        guard let body = try? LegacyRequestEncoder.encode(call.command.message, to: call.target) else { return [] }
        return [LegacySend.request(body, to: call.target, authorizedBy: .maskedServerKey)]
    }

    @inline(never)  // Keeps the frame small.
    private func prepareLegacy(_ call: UpstreamCall) throws(CallFailure) -> LegacySend {
        let account = try self.account(of: call.profile, by: .legacy, call.origin)
        guard let body = try? LegacyRequestEncoder.encode(call.command.message, to: call.target) else {
            throw CallFailure(code: .invalidTarget, upstreamCode: "inexpressible")
        }
        return LegacySend(context: CallContext(.legacy, by: account, for: call), body: body, target: call.target)
    }
}

struct LegacySend: FCMCall {
    let context: CallContext
    let body: ByteBuffer
    let target: Target

    private static let path = "/fcm/send"

    var route: String { Self.path }

    static func request(
        _ body: ByteBuffer,
        to target: Target,
        authorizedBy authorization: Authorization
    ) -> HTTPClientRequest {
        var request = HTTPClientRequest(method: .post, path: Self.path, headers: authorization.fields, body: body)
        request.maxResponseBodyBytes = Target.maxAnswerBytes(recipients: target.recipientCount)
        return request
    }

    func request(authorizedBy authorization: Authorization) -> HTTPClientRequest {
        Self.request(self.body, to: self.target, authorizedBy: authorization)
    }

    func read(_ response: HTTPClientResponse, now: Int) -> (SendResult, AnswerSign) {
        let status = response.status.code
        let result = LegacyResponseReader.read(
            UpstreamResponse(status: status, retryAfter: response.fields[.retryAfter], body: response.body),
            for: self.target,
            now: now,
            isIdempotent: self.context.reservation != nil
        )
        guard let refusal = result.refusal else { return (result, .well) }
        switch refusal.code {
        case _ where status == 429:
            return (result, .excess)
        case .upstreamUnavailable, .upstreamInternal, .outcomeUnknown:
            // A proxy's 502 or 504 may stand for a message that arrived; 200 has an error's name in its body.
            return (result, [200, 500, 503].contains(status) ? .busy(retryAfter: result.retryAfter) : .trouble)
        case .upstreamCredentials:
            return (result, .credentialRefused)
        default:
            return (result, .well)
        }
    }

    func unanswered(_ failure: CallFailure) -> SendResult { SendResult(failure) }
}
