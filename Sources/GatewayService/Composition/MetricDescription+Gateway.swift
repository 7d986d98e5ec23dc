import PrometheusMetrics

extension MetricDescription {
    /// Bounds in seconds for what takes a lock, a hash or a transaction.
    private static let shortSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5]

    /// What the gateway's metrics mean.
    static let gateway = [
        MetricDescription(
            name: "fcmgw_http_request_duration_seconds",
            help: "Time from a whole request to its answer, by route template, method and status.",
            kind: .histogram,
            buckets: HistogramBuckets.httpDurationSeconds
        ),
        MetricDescription(
            name: "fcmgw_http_active_requests",
            help: "Requests being answered now, by listener.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_shed_total",
            help: "Requests that were refused under load, by reason.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_device_group_requests_total",
            help: "Requests to manage device groups, by tenant, action and outcome.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_http_rejected_total",
            help:
                "Requests that the server refused before routing, and connections that it ended without an answer, by reason.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_messages_total",
            help: "Recipients that messages were asked to be sent to, by tenant, kind of target and outcome.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_oauth_refresh_total",
            help: "Exchanges for access tokens, by result.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_subscription_changes_total",
            help: "Devices whose subscription to a topic was to be changed, by tenant, change and outcome.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_upstream_attempt_duration_seconds",
            help: "Time that one call to FCM took, by protocol or API and by how it ended.",
            kind: .histogram,
            buckets: HistogramBuckets.httpDurationSeconds
        ),
        MetricDescription(
            name: "fcmgw_upstream_inflight",
            help: "Calls to FCM that wait for an answer now, by protocol or API.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_breaker_state",
            help: "Whether calls to FCM go through, by protocol and tenant: 0 all, 1 some, 2 none.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_retries_total",
            help: "Calls to FCM that were made once more, by reason.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_retry_budget_exhausted_total",
            help: "Calls to FCM that were not made once more for want of budget, by reason.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_limiter_decisions_total",
            help: "Decisions of the rate limiter, by the scope that decided, decision and source.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_limiter_duration_seconds",
            help: "Time that a decision of the rate limiter took, by source; one decision of 16 is timed.",
            kind: .histogram,
            buckets: Self.shortSeconds
        ),
        MetricDescription(
            name: "fcmgw_store_up",
            help: "Whether the last read, scan and write of the store were answered, by store: 0 or 1.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_store_wal_bytes",
            help: "Size of the store's write-ahead log after the last write, by store.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_directory_refused_rows",
            help: "Rows of the directory that are not served, by kind: tenant, key, credential.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_store_call_duration_seconds",
            help: "Time from a call of the store to its result, by store and operation.",
            kind: .histogram,
            buckets: Self.shortSeconds
        ),
        MetricDescription(
            name: "fcmgw_idempotency_total",
            help: "Requests and records with an idempotency key, by what became of the key.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_auth_total",
            help: "Attempts to authenticate, by method and result.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_audit_records_total",
            help:
                "Audit records that became durable in the store, went to the spool, or were refused by the store, by result.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_audit_spool_bytes",
            help: "Bytes of the spool that the audit's store does not have yet.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_audit_queue_records",
            help: "Audit records in the batch that is written now.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_audit_changed",
            help: "1 when this process has found that the stored audit is not what was written, 0 before.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_audit_last_checkpoint_timestamp_seconds",
            help: "Unix time up to which all audit records of the store are under a signed checkpoint.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_audit_checkpoint_interval_seconds",
            help: "How often a checkpoint of the audit is made while anything is written, as configured.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_audit_checkpoint_failures_total",
            help: "Attempts to sign and store a checkpoint of the audit that failed.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_audit_records_removed_total",
            help: "Audit records that were removed because they were older than they are to be kept.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_audit_sink_delivered_timestamp_seconds",
            help: "Unix time of the latest checkpoint of the audit that its second sink has with all before it.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_audit_sink_failures_total",
            help: "Attempts to write to the audit's second sink that failed.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_audit_write_duration_seconds",
            help: "Time that one batch of audit records took to become durable.",
            kind: .histogram,
            buckets: Self.shortSeconds
        ),
        MetricDescription(
            name: "fcmgw_retired_tokens",
            help: "Tokens that FCM reported dead or replaced, by how they stand.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_retired_token_refusals_total",
            help: "Recipients that were refused without asking FCM, because it called them unregistered lately.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_retired_token_changes_total",
            help:
                "Changes of the list of retired tokens that became durable, were refused by the store, or were dropped.",
            kind: .counter
        ),
        MetricDescription(
            name: "fcmgw_purge_guard_active",
            help: "Tenants whose reports of dead tokens are held back after a sudden jump, by tenant.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_config_last_reload_successful",
            help: "Whether the configuration was good when it was read last: 1, or 0 where an older one is in force.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_draining",
            help: "Whether the gateway is on its way out and wants no more traffic: 0 or 1.",
            kind: .gauge
        ),
        MetricDescription(
            name: "fcmgw_build_info",
            help: "Always 1; the version is the label.",
            kind: .gauge
        ),
    ]
}
