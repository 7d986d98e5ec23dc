"""Google's token endpoint is down, or refuses a service account."""

from __future__ import annotations

import time

from lab import Emulator, Gateway, Lab, v1_upstream

FAULT = "The token endpoint is down for 60 s, or refuses a key"
INJECTED = (
    "An emulated FCM whose `/token` answers 503, resets and hangs while renewals fall due; a service account that is "
    "deleted."
)
EXPECTED = (
    "With a valid token no send fails; without one, sends fail as `upstream_unavailable`. A refused key fails as "
    "`upstream_credentials` for its credential alone, and a new key works at once."
)

LIFETIME_S = 72
DOWN_S = 60
PROJECT = "shared-project"


def run(lab: Lab) -> str:
    fcm = lab.emulator(tls=True)
    gateway = lab.gateway({"upstream": v1_upstream(fcm)})
    fcm.control("POST", "settings", {"token_lifetime_s": LIFETIME_S})
    tenants = [gateway.tenant(f"holding-{number}", fcm, api="v1") for number in range(8)]
    late = gateway.tenant("late", fcm, api="v1")
    for tenant in tenants:
        assert tenant.send().status == 200
    exchanges = token_calls(fcm)
    begin = time.monotonic()
    fcm.fault("status", status=503, times=1_000_000, path="/token")
    loads = [tenant.load(concurrency=1, rate=10).start() for tenant in tenants]

    # Without a token in hand there is nothing to send with, and nobody waits long to hear so.
    answer = late.send()
    assert answer.status == 503 and answer.code == "upstream_unavailable" and answer.seconds < 1, answer
    calls = token_calls(fcm)
    assert late.load(count=200, concurrency=20).run().statuses == {503: 200}
    # The pause between attempts bounds what such a crowd asks.
    asked = token_calls(fcm) - calls
    assert asked <= 3, f"{asked} exchanges for 200 sends"

    time.sleep(max(0, begin + 50 - time.monotonic()))
    fcm.heal()
    fcm.fault("reset", times=1_000_000, path="/token")
    time.sleep(max(0, begin + 55 - time.monotonic()))
    fcm.heal()
    fcm.fault("hang", times=1_000_000, path="/token")
    time.sleep(max(0, begin + DOWN_S - time.monotonic()))
    failed = token_calls(fcm) - exchanges
    fcm.heal()
    # Past the end of the tokens that there were.
    time.sleep(max(0, begin + LIFETIME_S + 3 - time.monotonic()))
    sends = 0
    for load in loads:
        load.stop()
        assert set(load.statuses) == {200}, f"answered {load.statuses} {load.codes}"
        sends += len(load.answers)
    assert failed > len(tenants), f"only {failed} exchanges failed: no renewal fell due"
    lab.wait_until("the late one's token", lambda: late.send().status == 200, 61, pause=0.2)
    return (
        f"{sends} sends by {len(tenants)} tenants, none failed, while {failed} exchanges did; {refusal(fcm, gateway)}"
    )


def token_calls(fcm: Emulator) -> int:
    entries = fcm.control("GET", "journal?limit=10000")["entries"]
    return sum(entry["path"] == "/token" for entry in entries)


def refusal(fcm: Emulator, gateway: Gateway) -> str:
    account = fcm.account(PROJECT, client_email=f"refused@{PROJECT}.iam.gserviceaccount.com")
    refused = gateway.tenant("refused", fcm, api="v1", account=account)
    other = gateway.tenant("other", fcm, api="v1", account=fcm.account(PROJECT))
    for tenant in (refused, other):
        answer = tenant.send()
        assert answer.status == 200, answer
    fcm.control("DELETE", f"service-accounts?client_email={account['client_email']}")
    fcm.control("DELETE", "access-tokens")
    others = other.load(concurrency=2, rate=50).start()
    answers = refused.load(rate=100, count=200, concurrency=10).run()
    assert answers.statuses == {502: 200} and set(answers.codes) == {"upstream_credentials"}, answers.codes
    others.stop()
    assert set(others.statuses) == {200}, f"another credential of the project: {others.statuses}"
    replacement = fcm.account(PROJECT, client_email=f"replacement@{PROJECT}.iam.gserviceaccount.com")
    credential = {"service_account": replacement, "endpoint": fcm.url}
    gateway.admin("PUT", "tenants/refused/credentials/v1", credential)
    answer = refused.send()
    assert answer.status == 200, f"with a new credential: {answer}"
    # FCM itself refuses what its token endpoint has let in: 403 for everything of one credential.
    fcm.fault("status", status=403, times=1_000_000, path=f"/v1/projects/{PROJECT}/messages:send", token="forbidden")
    before = fcm.hits('"forbidden"')
    forbidden = refused.load(lambda _: refused.message("forbidden"), count=100, concurrency=1).run()
    assert set(forbidden.statuses) == {502} and set(forbidden.codes) == {"upstream_credentials"}, forbidden.codes
    asked = fcm.hits('"forbidden"') - before
    assert asked == 5, f"{asked} calls until the credential's breaker opened"
    answer = other.send()
    assert answer.status == 200, f"another credential: {answer}"
    return (
        f"a deleted account: 200 × `upstream_credentials`, {len(others.answers)} sends of another credential of the "
        f"same project without error, a new credential worked at once; 403: {asked} calls for 100 sends"
    )
