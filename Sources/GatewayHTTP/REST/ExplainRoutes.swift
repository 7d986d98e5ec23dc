import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
package import NIOCore

/// Tells what a send would do: `POST /v1/tenants/{tenant}/messages/explain`.
///
/// Nothing is sent or recorded; the work costs the tenant's quota one message, and no device's or topic's.
struct ExplainRoutes {
    let pipeline: SendPipeline
    let groups: DeviceGroups
    let upstreams: UpstreamEndpoints
    let clock: any WallClock

    var endpoints: [any Endpoint] {
        [
            Handler(
                .post,
                "/v1/tenants/{tenant}/messages/explain",
                action: .messageExplain,
                bodyLimit: Route.largeBody,
                self.explain
            )
        ]
    }

    @Sendable
    private func explain(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        if let refusal = await self.pipeline.charge(caller.principal) { throw refusal }
        let body = try ExplainedBody(
            exchange.request.body,
            contentType: exchange.contentType,
            form: Self.form(of: exchange)
        )
        let command = body.command(by: caller)
        let explanation = SendExplanation(
            body.message,
            payloadBytes: body.payloadBytes,
            to: try await self.target(of: command),
            of: caller.profile,
            endpoints: self.upstreams,
            preview: await self.pipeline.preview(command),
            now: self.clock.now().seconds
        )
        return HTTPServerResponse(json: explanation.json)
    }

    private static func form(of exchange: Exchange) throws(Refusal) -> ExplainedBody.Form {
        guard let text = try exchange.query(["form"]).text("form") else { return .rest }
        guard let form = ExplainedBody.Form(rawValue: text) else {
            throw Refusal(.invalidField, "form must be rest or legacy")
        }
        return form
    }

    /// The target in FCM's own terms.
    ///
    /// - Throws: `not_found` for a device group whose key the gateway does not know: FCM is not asked for it here.
    private func target(of command: SendCommand) async throws(Refusal) -> Target {
        guard let name = command.groupName else { return command.target }
        guard let key = try await self.groups.stored(name, of: command.principal.profile)?.key else {
            throw Refusal(.notFound, "The gateway knows no key of such a device group; a send asks FCM for one")
        }
        return .notificationKey(key)
    }
}

/// A body to explain, in either form that a sender may write.
struct ExplainedBody {
    /// How a body is written.
    enum Form: String, CaseIterable {
        /// As for `POST …/messages`.
        case rest
        /// As for `POST /fcm/send`, in JSON.
        case legacy
    }

    /// The most bytes that a request may have beside its payload and a list of recipients: it is shown.
    private static let maxOptionBytes = 64 * 1024

    let message: Message
    let payloadBytes: Int
    private let target: SendBodyTarget

    /// Reads a body.
    ///
    /// - Throws: why no send could have it.
    init(_ body: ByteBuffer, contentType: String?, form: Form) throws(Refusal) {
        switch form {
        case .rest:
            let body = try SendBody(JSONBody.members(of: body, contentType: contentType))
            self.target = body.target
            self.message = body.message
            self.payloadBytes = body.message.payloadBytes
        case .legacy:
            guard JSONBody.isJSON(contentType) else {
                throw Refusal(.unsupportedMediaType, "Send the body as application/json")
            }
            let request = try Self.legacyRequest(body)
            guard let target = request.sentTarget, !target.isDisguisedTopic else {
                throw Refusal(.invalidTarget, "None of the recipients is a registration token")
            }
            self.target = .direct(target)
            self.message = request.message
            self.payloadBytes = request.payloadBytes
        }
        let options = [self.target.text, self.message.collapseKey, self.message.restrictedPackageName]
        guard options.reduce(0, { $0 + ($1?.utf8.count ?? 0) }) <= Self.maxOptionBytes else {
            throw Refusal(.invalidField, "The target, the collapse key and the package name are too long to be shown")
        }
    }

    /// The command to send this.
    func command(by caller: Caller) -> SendCommand {
        self.target.command(by: caller, message: self.message, payloadBytes: self.payloadBytes)
    }

    private static func legacyRequest(_ body: ByteBuffer) throws(Refusal) -> LegacySendRequest {
        do {
            return try LegacyRequestDecoder.decode(body)
        } catch {
            throw error.explained
        }
    }
}

extension SendBodyTarget {
    /// The text that names the target; `nil` for a list, and for what has a bound of its own.
    fileprivate var text: String? {
        switch self {
        case .deviceGroup(let name): name
        case .direct(.token(let text)), .direct(.installation(let text)), .direct(.notificationKey(let text)): text
        case .direct(.tokens), .direct(.installations), .direct(.topic), .direct(.condition): nil
        }
    }
}

extension Refusal {
    /// What the legacy protocol would refuse, in this contract's terms.
    fileprivate var explained: Refusal {
        let name = self.legacyErrorName.rawValue
        switch (self.code, self.detail) {
        case (.malformedJSON, _): return self
        case (.messageTooBig, let detail?): return Refusal(self.code, "\(detail); the legacy protocol answers \(name)")
        case (_, let detail?): return Refusal(self.code, "The legacy protocol answers \(name): \(detail)")
        case (_, nil): return Refusal(self.code, "The legacy protocol answers \(name)")
        }
    }
}

/// Where messages go unless a tenant's credential names another server.
package struct UpstreamEndpoints: Sendable, Hashable {
    /// The server that takes legacy messages.
    package var legacy: String
    /// The server that takes v1 messages.
    package var v1: String

    /// Endpoints; by default Google's.
    package init(legacy: String = "https://fcm.googleapis.com", v1: String = "https://fcm.googleapis.com") {
        self.legacy = legacy
        self.v1 = v1
    }
}

/// A request that a send would make to its upstream, with the credential masked.
package struct PlannedRequest: Sendable, Hashable {
    /// Where it would go.
    package var url: String
    /// What `Authorization` would hold, with stars in place of the credential.
    package var maskedAuthorization: String
    /// The JSON that it would carry.
    package var body: ByteBuffer
}

/// What a message becomes on its way to one tenant's upstream.
struct UpstreamPlan {
    /// The protocol that the message would leave by.
    let kind: UpstreamKind
    private let url: String
    private let now: Int

    init(profile: TenantProfile, endpoints: UpstreamEndpoints, now: Int) {
        self.kind = profile.tenant.upstream
        self.now = now
        let own = profile.storedCredential?.endpoint
        switch self.kind {
        case .legacy: self.url = (own ?? endpoints.legacy) + "/fcm/send"
        case .v1:
            self.url = (own ?? endpoints.v1) + "/v1/projects/\(profile.v1ProjectID ?? profile.project)/messages:send"
        }
    }

    /// How many requests a message to a target becomes.
    func requestCount(to target: Target) -> Int {
        switch self.kind {
        case .legacy: 1
        case .v1: target.recipientCount
        }
    }

    /// The most requests that are shown; a list of recipients may become a thousand by v1.
    private static let maxShownRequests = 10
    /// The most bytes that they have together, if they are more than one.
    private static let maxShownBytes = 64 * 1024

    /// The first of those requests, in the order of the recipients; none where the protocol has no form for the target.
    func requests(_ message: Message, to target: Target) -> [PlannedRequest] {
        switch self.kind {
        case .legacy:
            guard let body = try? LegacyRequestEncoder.encode(message, to: target) else { return [] }
            return [PlannedRequest(url: self.url, maskedAuthorization: "key=***", body: body)]
        case .v1:
            let calls = V1Calls(message, to: target, now: self.now)
            var requests: [PlannedRequest] = []
            var byteCount = 0
            while requests.count < min(calls.count, Self.maxShownRequests) {
                let body = calls.body(at: requests.count)
                byteCount += body.readableBytes
                guard requests.isEmpty || byteCount <= Self.maxShownBytes else { break }
                requests.append(PlannedRequest(url: self.url, maskedAuthorization: "Bearer ***", body: body))
            }
            return requests
        }
    }

    /// The member of a request that names a target.
    func targetMember(_ target: Target) -> String {
        switch (self.kind, target) {
        case (.legacy, .tokens): "/registration_ids"
        case (.legacy, .condition): "/condition"
        case (.legacy, .token), (.legacy, .topic), (.legacy, .notificationKey), (.legacy, .installation),
            (.legacy, .installations):
            "/to"
        case (.v1, .token), (.v1, .tokens), (.v1, .notificationKey): "/message/token"
        case (.v1, .installation), (.v1, .installations): "/message/fid"
        case (.v1, .topic): "/message/topic"
        case (.v1, .condition): "/message/condition"
        }
    }
}

extension TenantProfile {
    /// The credential that a send uses; `nil` where the tenant has none for its upstream.
    var storedCredential: StoredCredential? {
        self.storedCredentials.first { $0.kind == self.tenant.upstream }
    }
}
