package import FCMModel
package import GatewayCore

/// What a send would do: the requests it would make, what its fields become, what stands against it.
///
/// It holds no credential. Made from values alone, so that whoever has a message and a tenant's picture can make one.
package struct SendExplanation: Sendable {
    /// Something that the caller may not expect.
    package struct Warning: Sendable, Hashable {
        /// The field that it is about (RFC 6901); empty for the message as a whole.
        package var pointer: String
        /// What happens, and why.
        package var detail: String
    }

    /// The protocol that the message would leave by.
    package let upstream: UpstreamKind
    /// Whom it is for.
    package let target: Target
    /// How many requests would be made.
    package let requestCount: Int
    /// The first of them, in the order of the recipients.
    package let requests: [PlannedRequest]
    /// What became of the target, and then of each field.
    package let fields: [FieldTrace]
    /// The payload's size in bytes.
    package let payloadBytes: Int
    /// Why the send would be refused whatever its quotas, if it would be.
    package let refusal: Refusal?
    /// What is left of the quotas that it would be charged to.
    package let limits: LimitStatus
    /// What the caller may not expect.
    package let warnings: [Warning]

    /// Explains a message.
    ///
    /// - Parameters:
    ///   - message: what would be sent.
    ///   - payloadBytes: the size that counts against the limit.
    ///   - target: whom to.
    ///   - profile: whose message it is.
    ///   - endpoints: where messages go.
    ///   - preview: how far the pipeline would let it.
    ///   - now: seconds since 1970.
    package init(
        _ message: Message,
        payloadBytes: Int,
        to target: Target,
        of profile: TenantProfile,
        endpoints: UpstreamEndpoints,
        preview: SendPreview,
        now: Int
    ) {
        let plan = UpstreamPlan(profile: profile, endpoints: endpoints, now: now)
        let isTooBig = payloadBytes > target.maxPayloadBytes
        let tooBig = isTooBig ? Refusal.messageTooBig(payloadBytes, to: target) : nil
        // What is too big is not written out: its size is all there is to say.
        let requests = tooBig == nil ? plan.requests(message, to: target) : []
        let traces = requests.first.map { FieldTrace.all(of: message, in: $0.body, of: plan.kind) } ?? []
        self.upstream = plan.kind
        self.target = target
        self.payloadBytes = payloadBytes
        self.refusal = preview.refusal ?? tooBig
        self.limits = preview.limits
        self.requests = self.refusal == nil ? requests : []
        self.requestCount = self.requests.isEmpty ? 0 : plan.requestCount(to: target)
        self.fields = [FieldTrace(pointer: "/\(target.kind.fieldName)", becomes: [plan.targetMember(target)])] + traces
        self.warnings = Self.warnings(message, traces, upstream: plan.kind, profile: profile)
    }

    private static func warnings(
        _ message: Message,
        _ traces: [FieldTrace],
        upstream: UpstreamKind,
        profile: TenantProfile
    ) -> [Warning] {
        var warnings: [Warning] = []
        if profile.storedCredential == nil {
            warnings.append(
                Warning(
                    pointer: "",
                    detail: "The tenant has no credential for its upstream, so that nothing can be sent"
                )
            )
        }
        for trace in traces where trace.becomes.isEmpty {
            warnings.append(
                Warning(pointer: trace.pointer, detail: "This has no effect here and is not sent to the upstream")
            )
        }
        if upstream == .v1, let key = message.collapseKey, key.utf8.count > Self.maxAppleCollapseBytes {
            warnings.append(
                Warning(
                    pointer: "/collapse_key",
                    detail: "It has more than \(Self.maxAppleCollapseBytes) bytes, so that Apple devices don't get it"
                )
            )
        }
        return warnings
    }

    /// The longest `apns-collapse-id` (http-v1, section 7).
    private static let maxAppleCollapseBytes = 64
}

extension TargetKind {
    /// The field of a send that names such a target.
    fileprivate var fieldName: String {
        switch self {
        case .token, .tokens, .installation, .installations, .topic, .condition: self.rawValue
        case .group: "device_group"
        }
    }
}
