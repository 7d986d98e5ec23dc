CREATE TABLE console_sessions (
    digest BYTEA NOT NULL PRIMARY KEY,
    token_name TEXT COLLATE "C",
    owner_digest BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL
);

INSERT INTO gateway_migrations (name, admits) VALUES ('v103', 'v100');
