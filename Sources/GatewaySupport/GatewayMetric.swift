/// A metric that the gateway exposes. The raw value is its name.
///
/// This table is the only list of metrics. ``GatewayMetrics`` makes handles for its rows, the exposition takes their
/// descriptions, and a test compares them with `docs/operations/monitoring.md`.
package enum GatewayMetric: String, CaseIterable, Sendable {
    case messages = "fcmgw_messages_total"
    case subscriptionChanges = "fcmgw_subscription_changes_total"
    case deviceGroupRequests = "fcmgw_device_group_requests_total"
    case httpRequestDuration = "fcmgw_http_request_duration_seconds"
    case httpActiveRequests = "fcmgw_http_active_requests"
    case httpRejected = "fcmgw_http_rejected_total"
    case shed = "fcmgw_shed_total"
    case authentications = "fcmgw_auth_total"
    case limiterDecisions = "fcmgw_limiter_decisions_total"
    case limiterDuration = "fcmgw_limiter_duration_seconds"
    case limiterFallbackActive = "fcmgw_limiter_fallback_active"
    case idempotency = "fcmgw_idempotency_total"
    case upstreamAttemptDuration = "fcmgw_upstream_attempt_duration_seconds"
    case upstreamInFlight = "fcmgw_upstream_inflight"
    case breakerState = "fcmgw_breaker_state"
    case retries = "fcmgw_retries_total"
    case retryBudgetExhausted = "fcmgw_retry_budget_exhausted_total"
    case oauthRefreshes = "fcmgw_oauth_refresh_total"
    case retiredTokens = "fcmgw_retired_tokens"
    case retiredTokenRefusals = "fcmgw_retired_token_refusals_total"
    case retiredTokenChanges = "fcmgw_retired_token_changes_total"
    case retiredTokenSpikeActive = "fcmgw_retired_token_spike_active"
    case storeUp = "fcmgw_store_up"
    case storeLogBytes = "fcmgw_store_wal_bytes"
    case directoryRefusedRows = "fcmgw_directory_refused_rows"
    case storeCallDuration = "fcmgw_store_call_duration_seconds"
    case storeConnections = "fcmgw_store_connections"
    case storePoolWaiters = "fcmgw_store_pool_waiters"
    case storeRetries = "fcmgw_store_retries_total"
    case storeCommitsUnknown = "fcmgw_store_commits_unknown_total"
    case cacheAge = "fcmgw_cache_age_seconds"
    case replicas = "fcmgw_replicas"
    case leader = "fcmgw_leader"
    case leaseTakeovers = "fcmgw_lease_takeovers_total"
    case leaseLosses = "fcmgw_lease_losses_total"
    case auditChainsClosed = "fcmgw_audit_chains_closed_total"
    case auditRecords = "fcmgw_audit_records_total"
    case auditQueue = "fcmgw_audit_queue_records"
    case auditWriteDuration = "fcmgw_audit_write_duration_seconds"
    case auditSpoolBytes = "fcmgw_audit_spool_bytes"
    case auditChanged = "fcmgw_audit_changed"
    case auditLastCheckpoint = "fcmgw_audit_last_checkpoint_timestamp_seconds"
    case auditCheckpointInterval = "fcmgw_audit_checkpoint_interval_seconds"
    case auditCheckpointFailures = "fcmgw_audit_checkpoint_failures_total"
    case auditRecordsRemoved = "fcmgw_audit_records_removed_total"
    case auditSinkDelivered = "fcmgw_audit_sink_delivered_timestamp_seconds"
    case auditSinkFailures = "fcmgw_audit_sink_failures_total"
    case batches = "fcmgw_batches"
    case batchRecipients = "fcmgw_batch_recipients_total"
    case batchWaitingRecipients = "fcmgw_batch_waiting_recipients"
    case batchDwell = "fcmgw_batch_dwell_duration_seconds"
    case batchOldestDue = "fcmgw_batch_oldest_due_seconds"
    case batchQuotaPauses = "fcmgw_batch_quota_pauses_total"
    case batchTakeovers = "fcmgw_batch_takeovers_total"
    case configLastReloadSuccessful = "fcmgw_config_last_reload_successful"
    case traceSpansDropped = "fcmgw_trace_spans_dropped_total"
    case traceExports = "fcmgw_trace_exports_total"
    case draining = "fcmgw_draining"
    case buildInfo = "fcmgw_build_info"

    /// The kind of a metric, as in swift-metrics and Prometheus.
    package enum Kind: Sendable {
        case counter
        case gauge
        /// The upper bounds of the buckets, in seconds. All histograms of the gateway are durations.
        case histogram([Double])
    }

    /// The description of one metric for Prometheus. The labels have the order in which ``GatewayMetrics`` takes their
    /// values.
    package struct Row: Sendable {
        package let kind: Kind
        package let labels: [String]
        package let help: String

        fileprivate static func counter(_ labels: [String], _ help: String) -> Row {
            Row(kind: .counter, labels: labels, help: help)
        }

        fileprivate static func gauge(_ labels: [String], _ help: String) -> Row {
            Row(kind: .gauge, labels: labels, help: help)
        }

        fileprivate static func histogram(_ bounds: [Double], _ labels: [String], _ help: String) -> Row {
            Row(kind: .histogram(bounds), labels: labels, help: help)
        }
    }

    /// OpenTelemetry's recommendation for the duration of HTTP requests.
    ///
    /// See https://opentelemetry.io/docs/specs/semconv/http/http-metrics/.
    private static let requestSeconds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

    /// For operations that take a lock, a hash or a transaction.
    private static let shortSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5]

    package var row: Row {
        switch self {
        case .messages:
            .counter(
                ["tenant", "kind", "outcome"],
                "Recipients of requested messages, by tenant, kind of target and outcome."
            )
        case .subscriptionChanges:
            .counter(
                ["tenant", "change", "outcome"],
                "Requested changes of devices' topic subscriptions, by tenant, change and outcome."
            )
        case .deviceGroupRequests:
            .counter(
                ["tenant", "action", "outcome"],
                "Requests to manage device groups, by tenant, action and outcome."
            )
        case .httpRequestDuration:
            .histogram(
                Self.requestSeconds,
                ["route", "method", "status"],
                "Time from a complete request to its answer, by route template, method and status."
            )
        case .httpActiveRequests:
            .gauge(["listener"], "Requests being answered now, by listener.")
        case .httpRejected:
            .counter(
                ["reason"],
                "Requests that the server refused before routing, and connections that it ended without an answer, by reason."
            )
        case .shed:
            .counter(["reason"], "Requests that were refused under load, by reason.")
        case .authentications:
            .counter(["method", "result"], "Attempts to authenticate, by method and result.")
        case .limiterDecisions:
            .counter(
                ["scope", "decision", "source"],
                "Decisions of the rate limiter, by the scope that decided, decision and source."
            )
        case .limiterDuration:
            .histogram(
                Self.shortSeconds,
                ["source"],
                "Time that a decision of the rate limiter took, by source; one decision of 16 is timed."
            )
        case .limiterFallbackActive:
            .gauge([], "1 while Redis fails and rate limits are not shared with other replicas.")
        case .idempotency:
            .counter(["result"], "Requests and records with an idempotency key, by the key's outcome.")
        case .upstreamAttemptDuration:
            .histogram(
                Self.requestSeconds,
                ["api", "outcome"],
                "Time that one call to FCM took, by protocol or API and by how it ended."
            )
        case .upstreamInFlight:
            .gauge(["api"], "Calls to FCM that wait for an answer now, by protocol or API.")
        case .breakerState:
            .gauge(
                ["api", "project"],
                "Calls to FCM that the circuit breaker passes, by protocol and tenant: 0 all, 1 some, 2 none."
            )
        case .retries:
            .counter(["reason"], "Calls to FCM that were repeated, by reason.")
        case .retryBudgetExhausted:
            .counter(["reason"], "Calls to FCM that were not repeated for lack of retry budget, by reason.")
        case .oauthRefreshes:
            .counter(["result"], "Exchanges for access tokens, by result.")
        case .retiredTokens:
            .gauge(["state"], "Tokens that this replica knows to be dead, replaced, or suspected to be dead, by state.")
        case .retiredTokenRefusals:
            .counter([], "Recipients that were refused without asking FCM: FCM had reported them as unregistered.")
        case .retiredTokenChanges:
            .counter(
                ["result"],
                "Changes of the list of retired tokens that became durable, were refused by the store, or were dropped."
            )
        case .retiredTokenSpikeActive:
            .gauge(["tenant"], "1 while reports of dead tokens are suspected because there are too many, by tenant.")
        case .storeUp:
            .gauge(["store"], "Whether the last read, scan and write of the store were answered, by store: 0 or 1.")
        case .storeLogBytes:
            .gauge(["store"], "Size of the store's write-ahead log after the last write, by store.")
        case .directoryRefusedRows:
            .gauge(["kind"], "Rows of the directory that are not served, by kind: tenant, key, credential.")
        case .storeCallDuration:
            .histogram(
                Self.shortSeconds,
                ["op", "store"],
                "Time from a call of the store to its result, by store and operation."
            )
        case .storeConnections:
            .gauge(["state"], "Connections that the pool may make to PostgreSQL, by state: busy or idle.")
        case .storePoolWaiters:
            .gauge([], "Calls that wait for a connection to PostgreSQL now.")
        case .storeRetries:
            .counter(["reason"], "Transactions of PostgreSQL that were run again, by the kind of conflict.")
        case .storeCommitsUnknown:
            .counter([], "Commits whose answer was lost and whose outcome the server did not know.")
        case .cacheAge:
            .gauge(["cache"], "Time since the store last reported other replicas' changes, by cache.")
        case .replicas:
            .gauge([], "Replicas whose heartbeat was at most ten seconds old at the store's last answer to this one.")
        case .leader:
            .gauge([], "1 if this replica is the leader, which does the work of one for all, else 0.")
        case .leaseTakeovers:
            .counter(["kind"], "Leases that this replica took over from others, by kind.")
        case .leaseLosses:
            .counter(["kind"], "Leases that others took over while this replica was still working, by kind.")
        case .auditChainsClosed:
            .counter([], "Audit chains of dead replicas that this one closed as their leader.")
        case .auditRecords:
            .counter(
                ["result"],
                "Audit records that became durable in the store, went to the spool, or were refused by the store, by result."
            )
        case .auditQueue:
            .gauge([], "Audit records in the batch that is written now.")
        case .auditWriteDuration:
            .histogram(Self.shortSeconds, ["result"], "Time that one batch of audit records took to become durable.")
        case .auditSpoolBytes:
            .gauge([], "Bytes of the spool that are not in the audit's store yet.")
        case .auditChanged:
            .gauge([], "1 if this process has found that the stored audit differs from what was written, else 0.")
        case .auditLastCheckpoint:
            .gauge([], "Unix time up to which all audit records of the store are under a signed checkpoint.")
        case .auditCheckpointInterval:
            .gauge([], "Configured interval of the audit's checkpoints while records are written.")
        case .auditCheckpointFailures:
            .counter([], "Attempts to sign and store a checkpoint of the audit that failed.")
        case .auditRecordsRemoved:
            .counter([], "Audit records that were removed after their retention period.")
        case .auditSinkDelivered:
            .gauge(
                [],
                "Unix time up to which all checkpoints of the audit are in its second sink, with the records before them."
            )
        case .auditSinkFailures:
            .counter([], "Attempts to write to the audit's second sink that failed.")
        case .batches:
            .gauge(["state"], "Batches and asynchronous messages in the store, by state.")
        case .batchRecipients:
            .counter(["outcome"], "Recipients of batches with a last outcome, by outcome.")
        case .batchWaitingRecipients:
            .gauge([], "Recipients of unfinished batches that are not sent to yet.")
        case .batchDwell:
            .histogram(
                [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 1_800],
                [],
                "Time from the moment at which recipients of a batch were due until they were claimed."
            )
        case .batchOldestDue:
            .gauge([], "Time for which the oldest due recipients of a batch that is not paused wait.")
        case .batchQuotaPauses:
            .counter([], "Pauses of a tenant's batches because FCM's quota of the project was used up.")
        case .batchTakeovers:
            .counter([], "Slices of batches that another process had begun and not recorded.")
        case .configLastReloadSuccessful:
            .gauge(
                [],
                "1 if the configuration was valid when it was last read, 0 if an older one is in force."
            )
        case .traceSpansDropped:
            .counter(["reason"], "Spans that were recorded and never reached the receiver, by reason.")
        case .traceExports:
            .counter(["result"], "Requests to the receiver of spans, by result.")
        case .draining:
            .gauge([], "1 while the gateway drains and wants no more traffic, else 0.")
        case .buildInfo:
            .gauge(["version"], "Always 1; the version is the label.")
        }
    }
}
