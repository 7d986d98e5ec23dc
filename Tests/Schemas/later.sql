-- A step as the next release may take it: over every table a column with a default and an index, and a table of its own, with
-- rights and policies. No release takes it; this build's statements run over it.
DO $$
DECLARE
    found RECORD;
BEGIN
    FOR found IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
        EXECUTE format('ALTER TABLE %I ADD COLUMN later TEXT COLLATE "C" NOT NULL DEFAULT ''''', found.tablename);
        EXECUTE format('CREATE INDEX %I ON %I (later)', found.tablename || '_later', found.tablename);
    END LOOP;
END $$;

CREATE TABLE later_rows (
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    PRIMARY KEY (tenant, number)
);

GRANT SELECT, INSERT, UPDATE, DELETE ON later_rows TO fcmgw_gateway;
GRANT SELECT ON later_rows TO fcmgw_tenant;
ALTER TABLE later_rows ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON later_rows TO fcmgw_gateway USING (true) WITH CHECK (true);
CREATE POLICY rows_of_tenant ON later_rows TO fcmgw_tenant
    USING (tenant = current_setting('fcmgw.tenant', true))
    WITH CHECK (tenant = current_setting('fcmgw.tenant', true));

-- It admits the release before it, and none that is older.
INSERT INTO gateway_migrations (name, admits) SELECT 'v999', max(name) FROM gateway_migrations;
