"""A batch as a test uploads, watches and judges it."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Sequence

from lab import LIMIT_S, Answer, Emulator, Lab, Tenant, call

PART = 5_000
# By HTTP v1 two marks of a hundred may be on their way, and a legacy slice is one call.
UNKNOWN_PER_SLICE = 200


class Batch:
    """A batch that was uploaded in parts, and is not started."""

    def __init__(self, tenant: Tenant, tokens: Sequence[str], **options: object) -> None:
        self.tenant, self.tokens = tenant, list(tokens)
        created = self.call("POST", "", {"message": {"data": {"k": "v"}}, "open": True, **options})
        assert created.status == 202, created
        self.id = created.json()["id"]
        for number, place in enumerate(range(0, len(self.tokens), PART), 1):
            stored = self.call("PUT", f"/{self.id}/parts/{number}", {"tokens": self.tokens[place:place + PART]})
            assert stored.status == 200, stored

    def call(self, method: str, path: str, body: dict | None = None) -> Answer:
        url = self.tenant.url.replace("/messages", "/batches")
        return call(method, url + path, self.tenant.headers, json.dumps(body) if body else None)

    def start(self) -> Batch:
        parts = -(-len(self.tokens) // PART)
        begun = self.call("POST", f"/{self.id}/start", {"parts": parts, "recipients": len(self.tokens)})
        assert begun.status == 200, begun
        return self

    def change(self, verb: str) -> dict:
        changed = self.call("POST", f"/{self.id}/{verb}")
        assert changed.status == 200, changed
        return changed.json()

    def show(self) -> dict:
        """Its state; empty while the gateway does not answer, or has no store."""
        answer = self.call("GET", f"/{self.id}")
        assert answer.status in (0, 200, 503), answer
        return answer.json() if answer.status == 200 else {}

    def results(self, outcome: str) -> list[str]:
        tokens, cursor = [], ""
        while True:
            page = self.call("GET", f"/{self.id}/results?limit=1000&outcome={outcome}{cursor}").json()
            tokens += [line["token"] for line in page["results"]]
            if not page.get("next_cursor"):
                return tokens
            cursor = f"&cursor={page['next_cursor']}"

    def wait_finished(self, lab: Lab, arrivals: Arrivals, seconds: float = LIMIT_S) -> dict:
        def is_finished() -> bool:
            arrivals.read()
            return self.show().get("state") == "finished"

        lab.wait_until("the end of the batch", is_finished, seconds, pause=0.5)
        arrivals.read()
        return self.show()

    def judge(self, arrivals: Arrivals, most_unknown: int) -> dict:
        """Asserts that the batch has an outcome for each recipient, which agrees with what came to FCM."""
        shown = self.show()
        arrivals.read()
        twice = [token for token in self.tokens if arrivals.counts[token] > 1]
        assert not twice, f"{len(twice)} sent to twice, such as {twice[0]}: {shown}"
        sums = shown["accepted"] + shown["unknown"] + shown["rejected"] + shown["expired"] + shown["cancelled"]
        assert sums == len(self.tokens) and shown["waiting"] == 0, shown
        rest = {token for outcome in ("unknown", "rejected", "expired", "cancelled") for token in self.results(outcome)}
        assert len(rest) == len(self.tokens) - shown["accepted"], shown
        phantom = [token for token in self.tokens if token not in rest and not arrivals.counts[token]]
        assert not phantom, f"{len(phantom)} accepted and never sent to, such as {phantom[0]}: {shown}"
        assert shown["unknown"] <= most_unknown, shown
        return shown


class Arrivals:
    """The calls that reached FCM, by token. The journal keeps the last 10,000, so it is read often."""

    def __init__(self, fcm: Emulator) -> None:
        self.fcm = fcm
        self.last = 0
        self.counts: collections.Counter[str] = collections.Counter()

    def read(self) -> None:
        entries = [entry for entry in self.fcm.journal() if entry["id"] > self.last]
        for entry in entries:
            self.counts.update(re.findall(r'"([a-z0-9-]+-end)"', entry["body"]))
        if entries:
            self.last = entries[-1]["id"]


def names(prefix: str, count: int) -> list[str]:
    """Tokens that no other batch of the test has."""
    return [f"{prefix}-{number}-end" for number in range(count)]
