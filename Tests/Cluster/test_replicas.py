"""The claims of several replicas, each in its short form; `make faults` plays the long ones.

Two fleets play them all, since a start takes seconds. A proof leaves its fleet as it was, and has tenants of its own.
"""

from __future__ import annotations

import contextlib
import unittest
from typing import ClassVar

import proofs_batches
import proofs_directory
import proofs_idempotency
import proofs_limits
import proofs_releases
import proofs_replicas
from cluster import Cluster
from lab import Lab
from servers import ROOT

PROGRAM = ROOT / ".build/debug/fcm-gateway"
KILLS = 10
# Recipients of a batch, which a busy machine calls in time.
FEW = 150
REDIS_TIMEOUT_MS = 250
# Those at which the owner has a lease; the others need none, and the long form has them.
LEASED = ("key stored", "call at FCM", "FCM answered")


class FleetTests(unittest.TestCase):
    """Three replicas, one PostgreSQL, one Redis."""

    # A machine with more to do than this may keep Redis waiting for longer than the 25 ms of the default.
    config: ClassVar[dict] = {"limits": {"redisTimeoutMs": REDIS_TIMEOUT_MS}}

    @classmethod
    def setUpClass(cls) -> None:
        with contextlib.ExitStack() as stack:
            lab = stack.enter_context(Lab(PROGRAM))
            cls.cluster = stack.enter_context(Cluster(lab, cls.config))
            cls.addClassCleanup(stack.pop_all().close)

    def tearDown(self) -> None:
        """What a proof that failed left behind is not the next one's."""
        for proxy in self.cluster.proxies:
            proxy.heal()
            proxy.mend()
            proxy.drops_notifications = False
        self.cluster.fcm.heal()
        self.cluster.fcm.control("POST", "settings", {"latency_ms": 0})
        for gateway in self.cluster.gateways:
            if gateway.process is None or gateway.process.poll() is not None:
                gateway.start()
        self.cluster.wait_until_up()


class ReplicaTests(FleetTests):
    """With time for whatever a busy machine keeps waiting: calls of FCM, and HAProxy before a replica ends."""

    config: ClassVar[dict] = {
        **FleetTests.config,
        "http": {"drainGraceMs": 2500, "shutdownTimeoutMs": 10_000},
        "upstream": {"connectTimeoutMs": 20_000, "timeoutMs": 20_000, "deadlineMs": 25_000},
        "store": {"leaseMs": 60_000},
    }

    def test_limits_are_exact(self) -> None:
        proofs_limits.exact(self.cluster)

    def test_limits_are_exact_with_skewed_clocks(self) -> None:
        proofs_limits.with_skewed_clocks(self.cluster, seconds=2)

    def test_limits_hold_while_a_policy_changes(self) -> None:
        proofs_limits.with_a_change(self.cluster, seconds=2)

    def test_limits_hold_when_redis_dies(self) -> None:
        proofs_limits.redis_killed(self.cluster, seconds=2)

    def test_a_hung_redis_costs_little(self) -> None:
        # Whoever asked a hung Redis each time would take the whole of its timeout.
        proofs_limits.redis_hung(self.cluster, seconds=2, share=0.5, noise=REDIS_TIMEOUT_MS / 2000)

    def test_redis_may_forget_scripts(self) -> None:
        proofs_limits.redis_forgets_scripts(self.cluster)

    def test_one_key_at_once_sends_once(self) -> None:
        proofs_idempotency.at_once(self.cluster, rounds=3)

    def test_a_revoked_key_is_refused_everywhere(self) -> None:
        proofs_directory.revocation(self.cluster)

    def test_an_admin_token_is_known_and_refused_everywhere(self) -> None:
        proofs_directory.admin_token(self.cluster)

    def test_a_tenant_is_changed_through_any_replica(self) -> None:
        proofs_directory.changes_anywhere(self.cluster)

    def test_a_replica_without_its_store_serves_its_snapshot(self) -> None:
        proofs_directory.cut_off_replica_revokes_in_the_end(self.cluster)

    def test_a_dead_token_is_refused_by_all_replicas(self) -> None:
        proofs_directory.retired_tokens(self.cluster)

    def test_a_report_that_commits_late_is_not_missed(self) -> None:
        proofs_directory.held_report(self.cluster, held=5)

    def test_a_rolling_restart_fails_no_request(self) -> None:
        proofs_replicas.rolling(self.cluster)

    def test_a_paused_leader_does_nothing_twice(self) -> None:
        proofs_replicas.paused_leader(self.cluster, seconds=2)

    def test_a_fleet_shows_what_only_it_has(self) -> None:
        proofs_replicas.metrics(self.cluster)

    def test_a_follower_shows_how_far_checkpoints_have_come(self) -> None:
        proofs_replicas.checkpoints_seen(self.cluster)

    def test_a_later_schema_admits_this_release(self) -> None:
        proofs_releases.later_schema(self.cluster)

    def test_the_store_stops_and_returns(self) -> None:
        proofs_replicas.store_stopped(self.cluster, seconds=3)

    def test_the_store_only_reads_for_a_while(self) -> None:
        proofs_replicas.store_read_only(self.cluster, seconds=3)

    def test_records_are_there_once_when_commits_are_lost(self) -> None:
        proofs_replicas.lost_commits(self.cluster, times=2)


class LeaseTests(FleetTests):
    """With leases that are short enough to be waited for."""

    @classmethod
    def tearDownClass(cls) -> None:
        """Whoever died, the audit is whole in the end."""
        cls.cluster.wait_verified()

    def test_a_killed_owner_sends_at_most_once(self) -> None:
        proofs_idempotency.kills(self.cluster, KILLS)

    def test_a_paused_owner_sends_at_most_once(self) -> None:
        proofs_idempotency.pauses(self.cluster, len(LEASED), LEASED)

    def test_lost_commits_send_at_most_once(self) -> None:
        proofs_idempotency.lost_commits(self.cluster)

    def test_a_batch_survives_a_killed_replica(self) -> None:
        proofs_batches.interrupted(self.cluster, "kill", 2, FEW)

    def test_a_batch_survives_a_paused_replica(self) -> None:
        proofs_batches.interrupted(self.cluster, "pause", 2, FEW)

    def test_a_replica_that_slept_before_its_reservation_sends_nothing(self) -> None:
        proofs_batches.paused_before_reservation(self.cluster)

    def test_a_batch_survives_lost_commits(self) -> None:
        proofs_batches.lost_commits(self.cluster, proofs_batches.LOST[1:3])

    def test_a_used_up_quota_pauses_all_replicas(self) -> None:
        proofs_batches.quota(self.cluster, recipients=FEW)

    def test_a_batch_survives_an_outage_of_the_store(self) -> None:
        postgresql = self.cluster.postgresql
        proofs_batches.outage(self.cluster, "PostgreSQL stopped", postgresql.stop, postgresql.start, count=300)

    def test_books_and_groups_agree(self) -> None:
        proofs_directory.groups(self.cluster, rounds=1)


if __name__ == "__main__":
    unittest.main()
