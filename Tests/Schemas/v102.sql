CREATE TABLE admin_tokens (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    role TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT
);

INSERT INTO gateway_migrations (name, admits) VALUES ('v102', 'v100');
