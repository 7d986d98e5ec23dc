import FCMModel
import GatewayCore
import NIOCore

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

    /// The first of those requests, in the order of the recipients; none where the protocol has no form for the target.
    func requests(_ message: Message, to target: Target, limit: Int) -> [PlannedRequest] {
        switch self.kind {
        case .legacy:
            guard let body = try? LegacyRequestEncoder.encode(message, to: target) else { return [] }
            return [PlannedRequest(url: self.url, maskedAuthorization: "key=***", body: body)]
        case .v1:
            let calls = V1Calls(message, to: target, now: self.now)
            return (0..<min(limit, calls.count))
                .map { index in
                    PlannedRequest(url: self.url, maskedAuthorization: "Bearer ***", body: calls.body(at: index))
                }
        }
    }

    /// The body of the request for the first recipient.
    func body(_ message: Message, to target: Target) -> ByteBuffer? {
        let first: Target =
            switch target {
            case .tokens(let tokens): tokens.first.map(Target.token) ?? target
            case .installations(let ids): ids.first.map(Target.installation) ?? target
            case .token, .installation, .topic, .condition, .notificationKey: target
            }
        return self.requests(message, to: first, limit: 1).first?.body
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
