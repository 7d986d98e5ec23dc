CREATE TABLE gateway_migrations (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    admits TEXT COLLATE "C" NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE TABLE replicas (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    master_key TEXT COLLATE "C" NOT NULL
);
CREATE TABLE store_epoch (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    epoch TEXT COLLATE "C" NOT NULL,
    origin TEXT COLLATE "C" NOT NULL
);
CREATE TABLE tenants (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    display_name TEXT COLLATE "C" NOT NULL,
    upstream TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C",
    sender_id TEXT COLLATE "C",
    prefixes_groups BIGINT NOT NULL,
    is_disabled BIGINT NOT NULL,
    client_names TEXT COLLATE "C" NOT NULL,
    salt BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    seal BYTEA NOT NULL
);

CREATE INDEX tenants_by_sender ON tenants (sender_id) WHERE sender_id IS NOT NULL;

CREATE TABLE credentials (
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    kind TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    wrapped_key BYTEA NOT NULL,
    sealed BYTEA NOT NULL,
    endpoint TEXT COLLATE "C",
    fingerprint TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, kind)
);

CREATE TABLE api_keys (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    scopes TEXT COLLATE "C" NOT NULL,
    topic_prefixes TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    seal BYTEA NOT NULL
);

CREATE INDEX api_keys_by_tenant ON api_keys (tenant);

CREATE TABLE limits (
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    scope TEXT COLLATE "C" NOT NULL,
    policies TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, scope)
);

CREATE TABLE directory_version (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    version BIGINT NOT NULL
);

CREATE TABLE directory_changes (
    tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL
);

CREATE INDEX directory_changes_by_version ON directory_changes (version);

CREATE TABLE gateway_secrets (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    wrapped_key BYTEA NOT NULL,
    sealed BYTEA NOT NULL
);
CREATE TABLE device_groups (
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    upstream_name TEXT COLLATE "C" NOT NULL,
    notification_key TEXT COLLATE "C",
    members TEXT COLLATE "C" NOT NULL,
    is_complete BIGINT NOT NULL,
    version BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE device_group_keys (
    tenant TEXT COLLATE "C" NOT NULL,
    notification_key TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    changed_in BIGINT NOT NULL,
    PRIMARY KEY (tenant, notification_key),
    FOREIGN KEY (tenant, name) REFERENCES device_groups (tenant, name) ON DELETE CASCADE
);

CREATE TABLE device_group_leases (
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    lease_until BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE INDEX device_group_keys_by_name ON device_group_keys (tenant, name, version);

CREATE INDEX device_group_keys_by_change ON device_group_keys (changed_in);
CREATE TABLE retired_tokens (
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    key BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    since BIGINT NOT NULL,
    reported_at BIGINT NOT NULL,
    replacement BIGINT NOT NULL,
    sealed BYTEA NOT NULL,
    due BIGINT NOT NULL,
    position BIGINT,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE INDEX retired_tokens_by_position ON retired_tokens (tenant, position) WHERE position IS NOT NULL;

CREATE INDEX retired_tokens_pending ON retired_tokens (tenant, due, key)
WHERE position IS NULL AND state IN ('unregistered', 'replaced');

CREATE INDEX retired_tokens_by_report ON retired_tokens (tenant, reported_at, key) WHERE state <> 'removed';

CREATE INDEX retired_tokens_by_change ON retired_tokens (changed_at);

CREATE INDEX retired_tokens_removed ON retired_tokens (changed_at) WHERE state = 'removed';

CREATE TABLE retired_token_feed (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    last_position BIGINT NOT NULL
);

CREATE TABLE retired_token_counts (
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    bucket BIGINT NOT NULL,
    judged BIGINT NOT NULL,
    unregistered BIGINT NOT NULL,
    PRIMARY KEY (tenant, bucket)
);

CREATE INDEX retired_token_counts_by_bucket ON retired_token_counts (bucket);
CREATE TABLE idempotency_records (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    route TEXT COLLATE "C" NOT NULL,
    key BYTEA NOT NULL,
    fingerprint BYTEA NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    is_finished BIGINT NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    lease_until BIGINT NOT NULL,
    weight BIGINT NOT NULL,
    content BYTEA NOT NULL,
    UNIQUE (tenant, route, key)
);

CREATE INDEX idempotency_records_by_expiry ON idempotency_records (expires_at);

CREATE INDEX idempotency_records_finished ON idempotency_records (tenant, id) WHERE is_finished = 1;

CREATE TABLE idempotency_usage (
    tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
    records BIGINT NOT NULL,
    weight BIGINT NOT NULL
);

CREATE TABLE idempotency_mark (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    time BIGINT NOT NULL,
    wall BIGINT NOT NULL
);
CREATE TABLE audit_records (
    writer BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    time BIGINT NOT NULL,
    tenant TEXT COLLATE "C",
    tenant_uid BIGINT NOT NULL,
    body BYTEA NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (writer, sequence)
);

CREATE INDEX audit_records_by_tenant ON audit_records (tenant, tenant_uid, time, writer, sequence)
WHERE tenant IS NOT NULL;

CREATE INDEX audit_records_by_time ON audit_records (time, writer, sequence);

CREATE TABLE audit_heads (
    writer BIGINT NOT NULL PRIMARY KEY,
    sequence BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    seal BYTEA NOT NULL
);

CREATE TABLE audit_writers (
    writer BIGINT NOT NULL PRIMARY KEY,
    replica TEXT COLLATE "C" NOT NULL
);

CREATE TABLE audit_checkpoints (
    number BIGINT NOT NULL PRIMARY KEY,
    content BYTEA NOT NULL,
    signature BYTEA NOT NULL
);

CREATE TABLE audit_sinks (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    delivered BIGINT NOT NULL
);

CREATE TABLE gateway_checkpoint_end (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    number BIGINT NOT NULL,
    digest BYTEA NOT NULL,
    removed BIGINT NOT NULL,
    removed_digest BYTEA NOT NULL,
    signature BYTEA NOT NULL
);

CREATE TABLE audit_truncations (
    writer BIGINT NOT NULL PRIMARY KEY,
    sequence BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    time BIGINT NOT NULL,
    signature BYTEA NOT NULL
);
CREATE FUNCTION instr(BYTEA, BYTEA) RETURNS BIGINT LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS 'SELECT CAST(position($2 IN $1) AS BIGINT)';

CREATE FUNCTION gateway_time() RETURNS BIGINT LANGUAGE sql VOLATILE PARALLEL SAFE
AS 'SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)';

CREATE FUNCTION gateway_notify() RETURNS BIGINT LANGUAGE sql VOLATILE PARALLEL UNSAFE
AS $$ SELECT CAST(1 AS BIGINT) FROM pg_notify('fcmgw_directory', '') $$;

CREATE FUNCTION gateway_transaction() RETURNS BIGINT LANGUAGE sql VOLATILE
AS 'SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)';

CREATE FUNCTION gateway_change_horizon() RETURNS BIGINT LANGUAGE sql STABLE
AS 'SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) - 1';

-- A dump is restored into another database, a base backup goes on with another timeline.
CREATE FUNCTION gateway_origin() RETURNS TEXT LANGUAGE sql STABLE
AS 'SELECT concat_ws(''/'', (SELECT system_identifier FROM pg_control_system()),
    left(pg_walfile_name(pg_current_wal_lsn()), 8),
    (SELECT oid FROM pg_database WHERE datname = current_database()))';

INSERT INTO gateway_migrations (name, admits) VALUES ('v100', 'v100');
