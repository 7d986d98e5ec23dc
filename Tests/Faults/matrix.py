"""The order of the fault matrix."""

ORDER = [
    "sudden_death", "upstream_hang", "upstream_reset", "upstream_storm", "retries_spread", "retry_after",
    "upstream_garbage", "oauth_down", "oauth_garbage", "disk_full", "store_locked", "audit_readers", "clock_step", "descriptors",
    "sigterm", "rolling_restart", "bad_reload", "overload", "idle_connections", "slow_peers", "oversized", "smuggling",
    "header_bomb", "json_bombs", "replica_owner", "replica_restarts", "replica_cut_off", "replica_sharing",
    "replica_mass_change",
    "postgresql_faults", "redis_faults", "two_releases",
]
