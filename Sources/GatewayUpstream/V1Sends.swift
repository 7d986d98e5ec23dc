import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

/// Messages by HTTP v1: one `messages:send` for each recipient.
extension FCMClient {
    /// HTTP v1 can express every target; a condition must fit its profile.
    static func v1Refusal(of target: Target) -> Refusal? {
        guard case .condition(let condition) = target, !condition.fits(.v1) else { return nil }
        return Refusal(.invalidField, "A condition names at most five topics", field: target.kind.rawValue)
    }

    func sendByV1(_ call: UpstreamCall) async -> SendResult {
        do throws(CallFailure) {
            let send = try self.prepareV1(call)
            return UpstreamKind.v1.sendsEach(of: call.target)
                ? await self.sendEach(send) : SendResult(await self.perform(send))
        } catch {
            return SendResult(error)
        }
    }

    /// Returns the first requests that ``sendByV1(_:)`` makes, without their access token.
    func v1Requests(of call: UpstreamCall, limit: Int) -> [HTTPClientRequest] {
        let path = V1Path.send(project: call.profile.v1ProjectID ?? call.profile.id.text)
        let calls = V1Calls(call.command.message, to: call.target, now: self.clock.now().seconds)
        return (0..<min(calls.count, limit))
            .map { V1Send.request(calls.body(at: $0), to: path, authorizedBy: .maskedToken) }
    }

    @inline(never)  // Keeps the frame small.
    private func prepareV1(_ call: UpstreamCall) throws(CallFailure) -> V1Send {
        let account = try self.account(of: call.profile, by: .v1, call.origin)
        return V1Send(
            context: CallContext(.v1, by: account, for: call),
            path: account.messagePath,
            calls: V1Calls(call.command.message, to: call.target, now: self.clock.now().seconds),
            kind: call.target.kind,
            mayBeGroup: call.mayBeGroup,
            keepsAnswer: call.command.message.passThrough != nil
        )
    }

    private func sendEach(_ send: V1Send) async -> SendResult {
        // Checked once for all calls: without a token none of them can be made.
        if let failure = await send.context.missingToken() { return SendResult(failure) }
        let readings = await FanOut.readings(
            count: send.calls.count,
            width: self.settings.configuration.fanOut,
            until: send.context.deadline,
            notStarted: send.unanswered(.notStarted),
            on: send.context.reservation?.callExecutor
        ) { index in
            var call = send
            call.index = index
            let reservation = call.context.reservation
            if let reservation, !(await reservation.pass(index)) { return (V1Send.notMarked, .all) }
            let reading = await self.perform(call)
            reservation?.finish(index, reading.outcome)
            return (reading, reading.signal.holdsForAll ? .all : .one)
        }
        return SendResult(gathering: readings)
    }
}

extension CallContext {
    /// Waits for an access token if one is needed and missing; returns a failure if none arrives.
    func missingToken() async -> CallFailure? {
        guard self.authorizer.current == nil,
            case .failure(let failure) = await self.authorizer.authorization(
                until: self.deadline,
                in: self.origin.trace
            )
        else { return nil }
        return CallFailure(failure)
    }
}

/// A message to one recipient, which may be one of a list.
struct V1Send: FCMCall {
    let context: CallContext
    let path: String
    let calls: V1Calls
    var index = 0
    /// The kind of target that all calls share.
    let kind: Target.Kind
    let mayBeGroup: Bool
    /// True if the caller also speaks v1 and gets FCM's own answer.
    let keepsAnswer: Bool

    /// A call of a list that the reservation did not allow.
    static let notMarked = V1Reading(answer: .rejected(Rejection(code: .overloaded)), upstreamCode: "not_started")

    var route: String { V1Path.template }

    static func request(
        _ body: ByteBuffer,
        to path: String,
        authorizedBy authorization: Authorization
    ) -> HTTPClientRequest {
        HTTPClientRequest(method: .post, path: path, headers: authorization.fields, body: body)
    }

    func request(authorizedBy authorization: Authorization) -> HTTPClientRequest {
        Self.request(self.calls.body(at: self.index), to: self.path, authorizedBy: authorization)
    }

    func read(_ response: HTTPClientResponse, now: Int) -> (V1Reading, AnswerSign) {
        let reading = V1ResponseReader.read(
            UpstreamResponse(response, isPassedOn: self.keepsAnswer),
            for: self.kind,
            mayBeGroup: self.mayBeGroup,
            now: now,
            keepsAnswer: self.keepsAnswer,
            isIdempotent: self.context.reservation != nil
        )
        return (reading, AnswerSign(reading))
    }

    func unanswered(_ failure: CallFailure) -> V1Reading {
        guard !failure.isTransport else {
            return V1Reading(transportFailure: failure.code, upstreamCode: failure.upstreamCode)
        }
        return V1Reading(
            answer: .rejected(Rejection(code: failure.code, retryAfter: failure.retryAfter)),
            signal: failure.code == .upstreamCredentials ? .credentialRefused : .none,
            upstreamCode: failure.upstreamCode
        )
    }
}

enum V1Path {
    static let template = "/v1/projects/{project}/messages:send"

    /// A project of a domain, such as `example.com:project`, keeps its colon.
    static func send(project: String) -> String {
        "/v1/projects/\(PercentEncoding.encoded(project, keeping: UInt8(ascii: ":")))/messages:send"
    }
}

extension UpstreamResponse {
    /// An answer, with its content type if it may be passed on.
    init(_ response: HTTPClientResponse, isPassedOn: Bool = false) {
        self.init(
            status: response.status.code,
            retryAfter: response.fields[.retryAfter],
            contentType: isPassedOn ? response.fields[.contentType] : nil,
            body: response.body
        )
    }
}

extension AnswerSign {
    init(_ reading: V1Reading) {
        switch reading.signal {
        case .none, .targetQuota: self = .well
        case .tokenRefused: self = .tokenRefused
        case .credentialRefused: self = .credentialRefused
        case .trouble: self = .trouble
        case .projectQuota:
            var delay: Int?
            if case .rejected(let rejection) = reading.answer { delay = rejection.retryAfter }
            self = AnswerSign(exhaustedQuota: delay)
        }
    }
}

extension V1Reading.Signal {
    /// True if the answer is about the credential or the project, and hence the same for every recipient.
    fileprivate var holdsForAll: Bool {
        switch self {
        case .tokenRefused, .credentialRefused, .projectQuota: true
        case .none, .targetQuota, .trouble: false
        }
    }
}
