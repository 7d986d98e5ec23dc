// Records, errors and times are named together everywhere.
@_exported public import GatewaySupport

/// One action that was done or refused, and its principal.
///
/// Never holds a payload, a token or a secret.
package struct AuditRecord: Sendable, Hashable {
    package var time: Timestamp
    package var tenant: String?
    /// `key:<id>`, `admin`, `gateway`, `leader` for a gateway that closes another replica's chain, `command` for a verb
    /// that works on the store directly, or `unknown` for a caller without the admin token.
    package var principal: String
    /// For instance `message.send` or `tenant.put`.
    package var action: String
    /// `accepted`, `partial`, `rejected`, `intent`, `done`, `failed` or `unknown`.
    package var outcome: Outcome
    package var requestID: String
    /// Tells the tenant from earlier and later ones of the same name; 0 without a tenant.
    package var tenantUID: UInt64 = 0
    package var method = ""
    /// The kind of what it was done to: a target kind, or an object's kind.
    package var targetKind = ""
    /// The pseudonyms of the recipients, 16 bytes each, in the request's order.
    package var targets: [UInt8] = []
    /// A name that is no secret, such as the changed key's id; of a send, how many recipients were refused as retired.
    package var object: String?
    /// The result for each recipient of a list, which are the last of ``targets``, in their order; empty if ``outcome``
    /// says it for all.
    package var results: [TargetResult] = []
    package var recipients = 0
    package var accepted = 0
    package var bytes = 0
    package var code: String?
    package var upstreamCode: String?
    package var fcmMessageID: String?
    package var messageID: String?
    package var traceID: String?
    /// The latest checkpoint when a chain began, in its first record (`audit.opened`); 0 for none.
    package var afterCheckpoint = 0
    /// The closed chain that a chain continues, by its writer, in the first record; 0 for none.
    package var continuesWriter = 0

    var intent: AuditRecord {
        var record = self
        record.outcome = .intent
        (record.accepted, record.results) = (0, [])
        (record.code, record.upstreamCode, record.fcmMessageID) = (nil, nil, nil)
        return record
    }

    /// The outcome of an action.
    package enum Outcome: String, Sendable, Hashable, CaseIterable {
        case accepted, partial, rejected, intent, done, failed
        /// The store's answer to a change was lost: it may have been made.
        case unknown
    }

    /// The result for one recipient of a list.
    package struct TargetResult: Sendable, Hashable {
        /// Why it was refused; `nil` where it was accepted.
        package var code: String?
        /// FCM's id of its message, where FCM accepted one.
        package var fcmMessageID: String?

        package init(code: String? = nil, fcmMessageID: String? = nil) {
            (self.code, self.fcmMessageID) = (code, fcmMessageID)
        }
    }
}

extension AuditRecord {
    package init(
        time: Timestamp,
        tenant: String?,
        principal: String,
        action: String,
        outcome: Outcome,
        requestID: String
    ) {
        (self.time, self.tenant, self.principal) = (time, tenant, principal)
        (self.action, self.outcome, self.requestID) = (action, outcome, requestID)
    }

    /// The record of a send. A function and not an initialiser: a call of an initialiser in another module copies the
    /// value.
    package static func send(
        time: Timestamp,
        tenant: String,
        principal: String,
        action: Action,
        outcome: Outcome,
        requestID: String,
        tenantUID: UInt64,
        method: String,
        targetKind: String,
        targets: [UInt8],
        object: String?,
        results: [TargetResult],
        recipients: Int,
        accepted: Int,
        bytes: Int,
        code: String?,
        upstreamCode: String?,
        fcmMessageID: String?,
        messageID: String,
        traceID: String?
    ) -> AuditRecord {
        AuditRecord(
            time: time,
            tenant: tenant,
            principal: principal,
            action: action.rawValue,
            outcome: outcome,
            requestID: requestID,
            tenantUID: tenantUID,
            method: method,
            targetKind: targetKind,
            targets: targets,
            object: object,
            results: results,
            recipients: recipients,
            accepted: accepted,
            bytes: bytes,
            code: code,
            upstreamCode: upstreamCode,
            fcmMessageID: fcmMessageID,
            messageID: messageID,
            traceID: traceID
        )
    }

    /// The record of what the gateway itself, or a command, has done.
    package init(_ action: Action, by principal: String = "gateway", at time: Timestamp) {
        self.init(time: time, tenant: nil, principal: principal, action: action.rawValue, outcome: .done, requestID: "")
    }

    /// A record that says nothing yet.
    init(tenant: String?, at time: Timestamp) {
        self.init(time: time, tenant: tenant, principal: "", action: "", outcome: .failed, requestID: "")
    }

    /// The names of all actions that can be recorded.
    package enum Action: String, Sendable, CaseIterable {
        case messageSend = "message.send"
        case messageValidate = "message.validate"
        case messageExplain = "message.explain"
        case topicSubscribe = "topic.subscribe"
        case topicUnsubscribe = "topic.unsubscribe"
        case topicList = "topic.list"
        case deviceGroupPut = "device_group.put"
        case deviceGroupAdd = "device_group.add"
        case deviceGroupRemove = "device_group.remove"
        case deviceGroupDelete = "device_group.delete"
        case deviceGroupLookUp = "device_group.look_up"
        case deviceGroupGet = "device_group.get"
        case deviceGroupList = "device_group.list"
        case retiredTokensList = "retired_tokens.list"
        case retiredTokensDelete = "retired_tokens.delete"
        case batchCreate = "batch.create"
        case batchPart = "batch.part"
        case batchStart = "batch.start"
        case batchPause = "batch.pause"
        case batchResume = "batch.resume"
        case batchCancel = "batch.cancel"
        case batchDelete = "batch.delete"
        case batchGet = "batch.get"
        case batchResults = "batch.results"
        case auditList = "audit.list"
        case tenantPut = "tenant.put"
        case tenantDelete = "tenant.delete"
        case credentialPut = "credential.put"
        case credentialDelete = "credential.delete"
        case credentialRewrap = "credential.rewrap"
        case keyCreate = "key.create"
        case keyImport = "key.import"
        case keyRotate = "key.rotate"
        case keyRevoke = "key.revoke"
        case limitsPut = "limits.put"
        case adminAuthenticate = "admin.authenticate"
        case adminTokenCreate = "admin_token.create"
        case adminTokenRevoke = "admin_token.revoke"
        case consoleLogIn = "console.log_in"
        case consoleLogOut = "console.log_out"
        case auditOpened = "audit.opened"
        case auditClosed = "audit.closed"
        case auditRecovered = "audit.recovered"
        case auditRemoved = "audit.removed"
        case auditSpoolDamaged = "audit.spool_damaged"
    }
}
