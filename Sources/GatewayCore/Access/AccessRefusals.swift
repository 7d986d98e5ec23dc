package import FCMModel

/// Records and counts requests that a key has no right to.
///
/// It runs before a request's body is read, so a key without the right can't cause more work. The record therefore
/// names no target. It is a class because it travels with every request.
package final class AccessRefusals: Sendable {
    private let audit: AuditLog
    private let clock: any WallClock
    /// `nil` on the admin listener, whose callers are no tenants.
    private let counters: (messages: TenantCounters, topics: TenantCounters, groups: TenantCounters)?

    /// The refusals of tenants' keys, counted with the requests of their kind.
    package init(sends: SendPipeline, topics: TopicPipeline, groups: DeviceGroups) {
        self.audit = sends.audit
        self.clock = sends.clock
        self.counters = (sends.metrics, topics.metrics, groups.metrics)
    }

    /// The refusals of the admin listener.
    package convenience init(_ administration: Administration) {
        self.init(audit: administration.audit, clock: administration.clock)
    }

    package init(audit: AuditLog, clock: any WallClock) {
        self.audit = audit
        self.clock = clock
        self.counters = nil
    }

    package func record(
        _ refusal: Refusal,
        of principal: Principal,
        asking action: AuditRecord.Action,
        origin: RequestOrigin
    ) async {
        var record = AuditRecord(action, by: principal, origin, at: self.clock.now())
        record.reject(refusal.code)
        await self.audit.record(refused: record)
        self.count(refusal, of: principal, action)
    }

    /// Records a request to the admin listener by a wrong token, with the caller's address, or by an operator without
    /// the role, with the route.
    package func record(_ code: OutcomeCode, at object: String?, origin: RequestOrigin) async {
        let name = origin.operator?.auditName ?? "unknown"
        var record = AuditRecord(.adminAuthenticate, by: name, of: nil, origin, at: self.clock.now())
        record.object = object
        record.reject(code)
        await self.audit.record(refused: record)
    }

    private func count(_ refusal: Refusal, of principal: Principal, _ action: AuditRecord.Action) {
        guard let counters = self.counters else { return }
        switch (action, action.scope) {
        case (.messageSend, _), (.messageValidate, _):
            counters.messages.count(refusal, of: principal, asking: GatewayMetrics.TenantLabels.shared)
        case (.topicSubscribe, _), (.topicUnsubscribe, _):
            let change: SubscriptionChange = action == .topicSubscribe ? .subscribe : .unsubscribe
            counters.topics.count(refusal, of: principal, asking: change.rawValue)
        case (_, .manageDeviceGroups?):
            counters.groups.count(refusal, of: principal, asking: action.rawValue)
        case (_, .sendMessages?), (_, .manageTopics?), (_, .readAudit?), (_, .readTokens?), (_, .manageTokens?),
            (_, .manageBatches?), (_, nil):
            break
        }
    }
}

extension AuditRecord.Action {
    /// The scope that a tenant's key needs for it, `nil` for an action that no key permits.
    package var scope: Scope? {
        switch self {
        case .messageSend, .messageValidate, .messageExplain: .sendMessages
        case .topicSubscribe, .topicUnsubscribe, .topicList: .manageTopics
        case .deviceGroupPut, .deviceGroupAdd, .deviceGroupRemove, .deviceGroupDelete, .deviceGroupLookUp,
            .deviceGroupGet, .deviceGroupList:
            .manageDeviceGroups
        case .batchCreate, .batchPart, .batchStart, .batchPause, .batchResume, .batchCancel, .batchDelete:
            .manageBatches
        case .batchGet, .batchResults: .sendMessages
        case .retiredTokensList: .readTokens
        case .retiredTokensDelete: .manageTokens
        case .auditList: .readAudit
        case .tenantPut, .tenantDelete, .credentialPut, .credentialDelete, .credentialRewrap, .keyCreate, .keyImport,
            .keyRotate,
            .keyRevoke, .limitsPut, .adminAuthenticate, .adminTokenCreate, .adminTokenRevoke, .consoleLogIn,
            .consoleLogOut,
            .auditOpened,
            .auditClosed, .auditRecovered, .auditRemoved,
            .auditSpoolDamaged:
            nil
        }
    }
}

extension Refusal {
    package init(lacking scope: Scope) {
        self.init(.forbidden, "The key lacks the scope \(scope.rawValue)")
    }
}

extension Refusal {
    package init(_ error: GatewayError) {
        let code: OutcomeCode =
            switch error.code {
            case .storeUnavailable, .overloaded, .cancelled: .overloaded
            case .notFound: .notFound
            case .conflict: .conflict
            case .preconditionFailed: .preconditionFailed
            case .auditUnavailable: .auditUnavailable
            case .invalid: .invalidField
            case .outcomeUnknown: .outcomeUnknown
            }
        self.init(code, error.message)
    }
}
