package import FCMModel
package import GatewayCore
import Synchronization

extension APIKey.Record {
    /// The record of a key, by default with every scope.
    package static func sample(
        of key: APIKey,
        tenant: String = "acme",
        pepper: APIKey.Pepper = .sample,
        scopes: Set<Scope> = Set(Scope.allCases),
        topicPrefixes: [String] = [],
        expiresAt: Timestamp? = nil,
        revokedAt: Timestamp? = nil
    ) throws -> APIKey.Record {
        APIKey.Record(
            id: key.id,
            tenant: try .sample(tenant),
            name: "sample",
            digest: pepper.digest(of: key),
            scopes: scopes,
            topicPrefixes: topicPrefixes,
            createdAt: .sample,
            expiresAt: expiresAt,
            revokedAt: revokedAt
        )
    }
}

extension APIKey.Pepper {
    package static let sample = APIKey.Pepper(.sample("pepper"))
}

extension Principal {
    package static func sample(
        tenant: String = "acme",
        limits: LimitPolicies = LimitPolicies(),
        scopes: Set<Scope> = Set(Scope.allCases),
        topicPrefixes: [String] = [],
        upstream: UpstreamKind = .legacy
    ) throws -> Principal {
        Principal(
            profile: try .sample(tenant, limits: limits, upstream: upstream),
            key: try .sample(of: .generate(), tenant: tenant, scopes: scopes, topicPrefixes: topicPrefixes)
        )
    }
}

extension Caller {
    /// A caller of a sample tenant, by default with a deadline in one minute.
    package static func sample(_ principal: Principal? = nil, timeLeft: Duration = .seconds(60)) throws -> Caller {
        Caller(
            principal: try principal ?? .sample(),
            origin: RequestOrigin(method: "PUT", requestID: "request-1"),
            deadline: .now + timeLeft
        )
    }
}

extension SendCommand {
    /// A message of 42 payload bytes to a target, without a near deadline.
    package static func sample(
        from principal: Principal,
        to target: Target,
        message: Message = Message(),
        payloadBytes: Int = 42
    ) -> SendCommand {
        SendCommand(
            by: Caller(principal: principal, origin: .sample, deadline: .now.advanced(by: .seconds(3_600))),
            to: target,
            message: message,
            payloadBytes: payloadBytes
        )
    }
}

extension RequestOrigin {
    /// A POST with a request id and a trace.
    package static let sample = RequestOrigin(method: "POST", requestID: "request-1", trace: .sample)
    /// A POST with a request id and without a trace.
    package static let untraced = RequestOrigin(method: "POST", requestID: "request-1")
}

extension RequestTrace {
    package static let sampleID = "4bf92f3577b34da6a3ce929d0e0e4736"
    package static let sampleParent = "00-\(sampleID)-00f067aa0ba902b7-01"

    package static var sample: RequestTrace? {
        RequestTracer().trace(parent: self.sampleParent, state: "a=1,b=2", arrival: .now, time: .sample)
    }

    /// A request whose spans are recorded, in a caller's trace or a new one.
    package static func recorded(in log: SpanLog, parent: String? = sampleParent) -> RequestTrace? {
        log.tracer().trace(parent: parent, state: nil, arrival: .now, time: .sample)
    }
}

/// Records spans in the order in which they end.
package final class SpanLog: Sendable {
    private let recorded = Mutex<[TraceSpan]>([])

    package init() {}

    package var spans: [TraceSpan] { self.recorded.withLock { $0 } }

    package func tracer(sampling ratio: Double = 1, propagates: Bool = true) -> RequestTracer {
        let recorder = RequestTracer.Recorder(sampling: ratio) { span in self.recorded.withLock { $0.append(span) } }
        return RequestTracer(recorder, propagates: propagates)
    }
}
