CREATE TABLE batches (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    kind TEXT COLLATE "C" NOT NULL,
    is_message BIGINT NOT NULL,
    digest BYTEA NOT NULL,
    label TEXT COLLATE "C",
    created_by TEXT COLLATE "C" NOT NULL,
    options TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C",
    credential TEXT COLLATE "C",
    api_key TEXT COLLATE "C" NOT NULL,
    canary_over BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    total BIGINT NOT NULL,
    accepted BIGINT NOT NULL,
    rejected BIGINT NOT NULL,
    unknown BIGINT NOT NULL,
    expired BIGINT NOT NULL,
    cancelled BIGINT NOT NULL,
    delete_at BIGINT,
    retention BIGINT NOT NULL,
    weight BIGINT NOT NULL,
    sealed BYTEA NOT NULL
);

CREATE INDEX batches_by_tenant ON batches (tenant, is_message, created_at, id);

CREATE INDEX batches_by_time ON batches (created_at, id) WHERE is_message = 0;

CREATE INDEX batches_unfinished ON batches (tenant) WHERE finished_at IS NULL AND is_message = 0;

CREATE INDEX batches_expiring ON batches (expires_at) WHERE finished_at IS NULL;

CREATE INDEX batches_paused ON batches (created_at) WHERE state = 'paused';

CREATE INDEX batches_over ON batches (delete_at) WHERE delete_at IS NOT NULL;

CREATE TABLE batch_parts (
    batch TEXT COLLATE "C" NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
    part BIGINT NOT NULL,
    digest BYTEA NOT NULL,
    recipients BIGINT NOT NULL,
    PRIMARY KEY (batch, part)
);

CREATE TABLE batch_chunks (
    batch TEXT COLLATE "C" NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL,
    state BIGINT NOT NULL,
    priority BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    pending BIGINT NOT NULL,
    round BIGINT NOT NULL,
    slice BIGINT NOT NULL,
    max_slice BIGINT NOT NULL,
    canary BIGINT NOT NULL,
    retries BIGINT NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    lease_until BIGINT NOT NULL,
    PRIMARY KEY (batch, number)
);

CREATE INDEX batch_chunks_waiting ON batch_chunks (tenant, priority, due_at, batch, number) WHERE state = 0;

CREATE INDEX batch_chunks_claimed ON batch_chunks (lease_until) WHERE state = 1;

CREATE TABLE batch_contents (
    batch TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    pending BYTEA NOT NULL,
    results BYTEA NOT NULL,
    PRIMARY KEY (batch, number),
    FOREIGN KEY (batch, number) REFERENCES batch_chunks (batch, number) ON DELETE CASCADE
);

CREATE TABLE batch_usage (
    tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
    messages BIGINT NOT NULL,
    recipients BIGINT NOT NULL,
    bytes BIGINT NOT NULL
);

CREATE TABLE batch_fan_outs (
    tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
    next_at BIGINT NOT NULL
);

CREATE TABLE project_pauses (
    project TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    until BIGINT NOT NULL,
    factor BIGINT NOT NULL
);

ALTER TABLE replicas ADD COLUMN schema TEXT COLLATE "C" NOT NULL DEFAULT 'v100';

INSERT INTO gateway_migrations (name, admits) VALUES ('v101', 'v100');
