"""The order of the fault matrix, and its faults that can't be played yet."""

ORDER = [
    "sudden_death", "upstream_hang", "upstream_reset", "upstream_storm", "retries_spread", "retry_after",
    "upstream_garbage", "oauth_down", "oauth_garbage", "disk_full", "store_locked", "audit_readers", "clock_step", "descriptors",
    "sigterm", "rolling_restart", "bad_reload", "overload", "idle_connections", "slow_peers", "oversized", "smuggling",
    "header_bomb", "json_bombs",
]

# The fault, what is expected of it, and what is missing for it.
NOT_YET = [
    ("Redis down, slow or hung", "local limits within 30 ms, an alert, recovery within 2 s", "limits kept in Redis"),
    ("Redis failover, `SCRIPT FLUSH`, full, read-only", "at most one further burst for each key",
     "limits kept in Redis"),
    ("PostgreSQL down", "cached keys serve; what must be written is 503", "the store in PostgreSQL"),
    ("PostgreSQL restarted, an ambiguous commit", "no record twice", "the store in PostgreSQL"),
    ("PostgreSQL read-only", "503 for writes, `/readyz` stays up", "the store in PostgreSQL"),
    ("One replica cut off", "its leases are taken over, its late results dropped", "the outbox, several replicas"),
]
