"""Two releases on one store: a schema that a later release has added to, and two programs side by side."""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import proofs_directory
import proofs_idempotency
from cluster import NAMES, SEEN_S, SIZE, Cluster, Shared
from proofs_replicas import ended, loads, sent_once
from servers import ROOT, PostgreSQL

sys.path.insert(0, str(ROOT / "Tests/Faults"))

from lab import LIMIT_S, Load  # noqa: E402

LATER = (ROOT / "Tests/Schemas/later.sql").read_text()
STEP = "v999"
# The store as it was, for the next proof.
BACK = f"""
    DROP TABLE later_rows;
    DO $$
    DECLARE found RECORD;
    BEGIN
        FOR found IN SELECT attrelid::regclass AS name FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
            WHERE relkind = 'r' AND attname = 'later' LOOP
            EXECUTE format('ALTER TABLE %s DROP COLUMN later', found.name);
        END LOOP;
    END $$;
    DELETE FROM gateway_migrations WHERE name = '{STEP}'
"""
_numbers = itertools.count(1)


def run_step(cluster: Cluster, sql: str) -> None:
    """As the owner, all or nothing; again where replicas were in the way, as an operator repeats `store migrate`."""

    def is_done() -> bool:
        cluster.postgresql.query(f"SET lock_timeout = '5s';\n{sql}", user=PostgreSQL.OWNER)
        return True

    cluster.lab.wait_until("the step of the schema", is_done, 60)


def agree(cluster: Cluster) -> None:
    """A tenant that one replica makes is known to all, and so is what became of a request with a key."""
    tenant = cluster.tenant()
    number = next(_numbers)
    body = tenant.at(0).message(f"release-{number}")
    for place in range(SIZE):
        key = f"release-{number}-{place}"
        first = tenant.at(place).idempotent(key, body)
        assert first.status == 200, f"{NAMES[place]}: {first}"
        repeats = [tenant.at(other).idempotent(key, body) for other in range(SIZE)]
        assert all((each.status, each.body) == (200, first.body) for each in repeats), list(map(str, repeats))


def replace(cluster: Cluster, place: int, program: Path | None = None) -> None:
    """Stops a replica as a rollout does, and starts it, perhaps as another release."""
    gateway = cluster.gateways[place]
    status = gateway.stop()
    assert status == 0, f"{NAMES[place]} exited {status}"
    gateway.program = program or gateway.program
    cluster.start(place)
    cluster.wait_until_up()


def all_well(cluster: Cluster, tenant: Shared, running: list[Load]) -> int:
    """Ends the load: no request failed, each was sent once and has one record; how many there were."""
    answers = ended(running)
    failed = [answer for answer in answers if answer.status != 200]
    assert not failed, f"{len(failed)} of {len(answers)} failed, such as {failed[0]}"
    sent_once(cluster, 0)
    cluster.wait_recorded(tenant.name, len(answers))
    cluster.wait_verified(SEEN_S)
    return len(answers)


def later_schema(cluster: Cluster, restarts: int = 1) -> str:
    """The next release's step runs under load; replicas of this one go on and are restarted, until they are not admitted."""
    tenant = cluster.tenant()
    cluster.fcm.forget()
    running = loads(tenant)
    time.sleep(1)
    run_step(cluster, LATER)
    first = cluster.gateways[0]
    try:
        agree(cluster)
        for place in range(restarts):
            replace(cluster, place)
        agree(cluster)
        count = all_well(cluster, tenant, running)
        cluster.migrate()
        found = cluster.postgresql.query("SELECT count(*) FROM pg_policies WHERE tablename = 'later_rows'")
        assert found == [["2"]], f"`store migrate` of the release before changed policies: {found}"
        proofs_directory.revocation(cluster, rounds=1)
        proofs_idempotency.at_once(cluster, rounds=1)

        run_step(cluster, f"UPDATE gateway_migrations SET admits = '{STEP}' WHERE name = '{STEP}'")
        assert first.stop() == 0
        first.start(wait=False)
        assert first.process, "it was not started"
        status = first.process.wait(LIMIT_S)
        cluster.lab.processes.stop(first.process)
        said = cluster.lab.processes.log(first.log, 20)
        assert status != 0 and f"later version of the gateway ({STEP})" in said, f"exited {status}: {said}"
        assert tenant.at(1).send().status == 200
    finally:
        run_step(cluster, BACK)
    first.start()
    cluster.wait_until_up()
    return f"a later schema under load: {count} requests, {restarts} restarts, 0 failed, a release that is not admitted is refused"


def side_by_side(cluster: Cluster, program: Path) -> str:
    """A fleet of the release before becomes one of this release under load, goes back, and stays mixed for a while."""
    before = cluster.gateways[0].program
    tenant = cluster.tenant()
    cluster.fcm.forget()
    running = loads(tenant)
    cluster.migrate(program)
    agree(cluster)
    for release in (program, before):
        for place in range(SIZE):
            replace(cluster, place, release)
            agree(cluster)
    replace(cluster, 0, program)
    count = all_well(cluster, tenant, running)
    figures = (
        proofs_idempotency.at_once(cluster, rounds=20), proofs_idempotency.kills(cluster, 24),
        proofs_directory.revocation(cluster, rounds=4), proofs_directory.retired_tokens(cluster),
        proofs_directory.groups(cluster, rounds=3), f"`audit verify` 0 after {cluster.wait_verified():.0f} s",
    )
    return f"{count} requests while {2 * SIZE} replicas were replaced, 0 failed; then mixed: " + "; ".join(figures)
