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
