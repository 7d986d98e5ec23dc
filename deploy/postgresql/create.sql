-- A database for gateways, the owner of its tables, and the user that gateways connect as. Once, as a superuser:
--
--   export OWNER_PASSWORD_FILE=owner.password STORE_PASSWORD_FILE=store.password
--   psql --dbname=postgres --file=deploy/postgresql/create.sql
--
-- The passwords are read where psql runs, and are in no argument. Then `fcm-gateway store migrate`, as fcm_owner.

\set ON_ERROR_STOP on
\set owner_password `cat "$OWNER_PASSWORD_FILE"`
\set store_password `cat "$STORE_PASSWORD_FILE"`

-- Nobody logs in as these two: a gateway takes one or the other for each transaction.
CREATE ROLE fcmgw_tenant NOLOGIN;
CREATE ROLE fcmgw_gateway NOLOGIN;

CREATE ROLE fcm_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE fcm_gateway LOGIN PASSWORD :'store_password';
GRANT fcmgw_tenant, fcmgw_gateway TO fcm_owner, fcm_gateway;

-- A machine that vanishes holds its locks, the leader's among them, until the server misses it: after two hours by default.
ALTER ROLE fcm_gateway SET tcp_keepalives_idle = 30;
ALTER ROLE fcm_gateway SET tcp_keepalives_interval = 10;
ALTER ROLE fcm_gateway SET tcp_keepalives_count = 3;
-- A COMMIT is on the disk before it is answered, and on the synchronous standby where there is one.
ALTER ROLE fcm_gateway SET synchronous_commit = on;

CREATE DATABASE fcm_gateway OWNER fcm_owner ENCODING 'UTF8' TEMPLATE template0;
REVOKE CONNECT, TEMPORARY ON DATABASE fcm_gateway FROM PUBLIC;
GRANT CONNECT ON DATABASE fcm_gateway TO fcm_gateway;

-- Before PostgreSQL 15 every user may make tables in the schema public.
\connect fcm_gateway
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT CREATE ON SCHEMA public TO fcm_owner;
