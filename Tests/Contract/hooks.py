"""What schemathesis can't know of the gateway, and what of its checks can't hold, with the reasons.

The environment says what is tested: see `run` in test_schemathesis.py.
"""

from __future__ import annotations

import atexit
import copy
import datetime
import hashlib
import functools
import itertools
import json
import os
import re
import threading
import urllib.error
import urllib.request
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema_rs
import requests
import schemathesis
import yaml
from schemathesis import Case, HookContext, Response
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure
from schemathesis.generation.meta import TestPhase
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

ADMIN_URL = os.environ["CONTRACT_ADMIN_URL"]
ADMIN_TOKEN = os.environ["CONTRACT_ADMIN_TOKEN"]
DATA_URL = os.environ["CONTRACT_DATA_URL"]
# By what they may do.
KEYS = json.loads(os.environ["CONTRACT_KEYS"])
# By their roles, the least first.
ADMIN_TOKENS = json.loads(os.environ["CONTRACT_ADMIN_TOKENS"])
COUNTS = Path(os.environ["CONTRACT_COUNTS"])
SERVICE_ACCOUNT = json.loads(os.environ["CONTRACT_SERVICE_ACCOUNT"])


# What can't hold.


class Exemption(NamedTuple):
    """A failure of a check that is none, in the places where the reason holds."""

    # Regular expressions: the failures' types, and the operations.
    check: str
    operations: str
    holds: Callable[[Case, Response], bool]
    reason: str


def problem(response: Response) -> dict[str, Any]:
    """The answer's problem details, or an empty object."""
    try:
        content = response.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def has_code(*codes: str) -> Callable[[Case, Response], bool]:
    return lambda _, response: problem(response).get("code") in codes


def says(text: str) -> Callable[[Case, Response], bool]:
    return lambda _, response: text in response.text


def is_hurried(_: Case, response: Response) -> bool:
    """Whether the caller gave FCM less time than an answer may take here."""
    limit = response.request.headers.get("X-Request-Timeout-Ms", "")
    limit = limit.decode("latin-1") if isinstance(limit, bytes) else limit
    return response.status_code in (500, 502, 503, 504) and limit.isdigit() and int(limit) < 60_000


def has_absentee(case: Case, _: Response) -> bool:
    """Whether there is a `null` or an empty text anywhere in the body."""
    rest = [case.body]
    while rest:
        value = rest.pop()
        if value is None or value == "":
            return True
        if isinstance(value, dict):
            rest += value.values()
        elif isinstance(value, list):
            rest += value
    return False


EXEMPTIONS = [
    Exemption(
        "ServerError|RejectedPositiveData|AcceptedNegativeData", ".*", is_hurried,
        "The caller's own deadline passed, which is told by 503 or 504 (500 for legacy device groups).",
    ),
    Exemption(
        "AcceptedNegativeData", ".*",
        lambda _, response: "x-schemathesis-unknown-property" in response.request.headers,
        "A header that nobody described is no fault.",
    ),
    Exemption(
        "AcceptedNegativeData", "POST /fcm/send", lambda _, response: response.status_code == 200,
        "The legacy protocol tells most errors, those of values among them, in an answer with 200.",
    ),
    Exemption(
        "AcceptedNegativeData", "POST /v1/(projects/{project}/messages:send|tenants/{tenant}/(messages(/explain)?|batches))",
        has_absentee,
        "To HTTP v1, as to the legacy protocol, null and an empty text are as good as nothing.",
    ),
    Exemption(
        "RejectedPositiveData", ".*", lambda _, response: response.status_code == 414,
        "The whole address has at most 4 KiB; a schema bounds each part of it alone.",
    ),
    Exemption(
        "RejectedPositiveData", ".*", has_code("message_too_big", "group_too_large", "too_many_members", "too_deep"),
        "A sum over the body, or over what a group holds already, is nothing that a schema can bound.",
    ),
    Exemption(
        "RejectedPositiveData", "GET /admin/v1/audit", says("target needs a tenant that exists"),
        "Which tenants exist is not the schema's to know.",
    ),
    Exemption(
        "RejectedPositiveData", "PUT /admin/v1/tenants/{tenant}/credentials/(legacy|v1)",
        says("http is for this machine itself and for the hosts in upstream.allowPlainHTTP alone"),
        "Which hosts plain http is for is not the schema's to know.",
    ),
    Exemption(
        "RejectedPositiveData", "DELETE /v1/tenants/{tenant}/retired-tokens", says("Name the token or the fid to remove"),
        "That one of two parameters is needed, and not both, is nothing that a schema can say.",
    ),
    Exemption(
        "RejectedPositiveData", "GET /v1/tenants/{tenant}/subscriptions", says("Either token or fid must name the device"),
        "That one of two parameters is needed, and not both, is nothing that a schema can say.",
    ),
    Exemption(
        "RejectedPositiveData", "(PUT|PATCH) /admin/v1/tenants/{tenant}/limits",
        says("must refill its burst within 30 days"),
        "A product of three members is nothing that a schema can bound.",
    ),
    Exemption(
        "RejectedPositiveData", "(PUT|PATCH|DELETE) /admin/v1/tenants/{tenant}(/limits)?", has_code("precondition_failed"),
        "Which state If-Match has to name is not the schema's to know.",
    ),
    Exemption(
        "RejectedPositiveData", "POST /admin/v1/tenants/{tenant}/keys", says("This is in the past"),
        "What time it is is not the schema's to know.",
    ),
    Exemption(
        "RejectedPositiveData", "POST /v1/tenants/{tenant}/batches", says("at most 30 days ahead"),
        "What time it is is not the schema's to know.",
    ),
    Exemption(
        "RejectedPositiveData", "POST /v1/tenants/{tenant}/messages/explain",
        says("None of the recipients is a registration token"),
        "The legacy protocol tells of empty tokens in their places; where all are, nothing is left to explain.",
    ),
    Exemption(
        "RejectedPositiveData", "POST /fcm/notification", says("must hold at most 20 different tokens"),
        "How many entries of a list differ is nothing that a schema can bound.",
    ),
    Exemption(
        "RejectedPositiveData", "POST (/fcm/send|/v1/tenants/{tenant}/messages/explain)",
        says("badge must be an integer"),
        "To a schema, 1.0 and 1e3 are integers like any other; the legacy protocol wants digits.",
    ),
]


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    """Drops the failures that are none."""
    for exemption in EXEMPTIONS:
        if (
            re.fullmatch(exemption.check, type(failure).__name__)
            and re.fullmatch(exemption.operations, case.operation.label)
            and exemption.holds(case, response)
        ):
            _count(case, f"exempt: {exemption.reason}")
            return False
    return True


# What a key may not do.


class MissingHeader(Failure):
    """An answer without a header that every answer of its kind has."""


@schemathesis.check
def usual_headers(ctx: schemathesis.CheckContext, response: Response, case: Case) -> None:
    """What the descriptions say of headers for all operations alike."""
    missing = []
    if "x-request-id" not in response.headers:
        missing.append("X-Request-ID")
    is_problem = response.headers.get("content-type") == ["application/problem+json"]
    if is_problem and response.status_code in (429, 503) and "retry-after" not in response.headers:
        missing.append("Retry-After")
    if response.status_code == 401 and response.headers.get("www-authenticate") != ["Bearer"]:
        missing.append("WWW-Authenticate: Bearer")
    if response.status_code == 405 and "allow" not in response.headers:
        missing.append("Allow")
    if ("ratelimit" in response.headers) != ("ratelimit-policy" in response.headers):
        missing.append("RateLimit or RateLimit-Policy")
    if missing:
        raise MissingHeader(
            operation=case.operation.label,
            title="A usual header is missing",
            message=f"The answer {response.status_code} lacks {', '.join(missing)}",
        )


# What every answer has to hold, whoever gets it.
CONFORMANCE = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    usual_headers,
]
_session = requests.Session()


class AccessGiven(Failure):
    """An operation that was served to somebody who may not have it."""


@schemathesis.check
def others_are_refused(ctx: schemathesis.CheckContext, response: Response, case: Case) -> None:
    """Sends the same request with less and less, and checks each answer.

    After the credential that may do everything: keys without the scope that the operation's `security` names, admin
    tokens of lesser roles, a credential of the other listener, and none at all.
    """
    needed = _needed_scope(case)
    if response.status_code == 405:
        return
    for access, credential, scopes in _lesser_accesses(needed):
        request = response.request.copy()
        request.headers.pop("Authorization", None)
        if credential:
            request.headers["Authorization"] = f"Bearer {credential}"
        answer = Response.from_requests(_session.send(request, timeout=180), verify=True)
        _count(case, f"{access} {answer.status_code}")
        if case.meta is not None and case.meta.phase.name is TestPhase.FUZZING:
            _count(case, f"examples by {access}")
        case.validate_response(answer, checks=CONFORMANCE)
        if needed is None and answer.status_code != response.status_code:
            raise AccessGiven(
                operation=case.operation.label,
                title="An operation that needs no credential looks at it",
                message=f"Without one the answer is {answer.status_code} instead of {response.status_code}",
            )
        if needed is None or needed in scopes:
            continue
        # Less than the whole request may be looked at before the caller is; a foreign tenant is as good as none.
        expected = (401, 403, 404, 414) if case.meta.generation.mode.is_positive else range(400, 500)
        if answer.status_code not in expected:
            raise AccessGiven(
                operation=case.operation.label,
                title="An operation was served to somebody who may not have it",
                message=f"It needs {needed}; with {access} the answer is {answer.status_code}: {answer.text[:500]}",
            )


def _lesser_accesses(needed: str | None) -> list[tuple[str, str, set[str]]]:
    """Names, credentials and scopes."""
    if needed is None:
        return [("nothing", "", set())]
    if needed in ADMIN_TOKENS:
        lesser = list(ADMIN_TOKENS)[: list(ADMIN_TOKENS).index(needed)]
        roles = [(role, ADMIN_TOKENS[role], set()) for role in lesser]
        return [*roles, ("tenant's key", KEYS["full"], set()), ("nothing", "", set())]
    return [
        ("messages:send alone", KEYS["messages:send"], {"messages:send"}),
        ("all other scopes", KEYS[f"all but {needed}"], set()),
        ("admin token", ADMIN_TOKEN, set()),
        ("nothing", "", set()),
    ]


def _needed_scope(case: Case) -> str | None:
    """The scope or role that an operation asks for, the first of several; `None` for one that needs no credentials."""
    alternatives = case.operation.definition.raw.get("security")
    if not alternatives:
        return None
    (scope,) = {scopes[0] for alternative in alternatives for scopes in alternative.values()}
    return scope


# What a request needs that a schema can't say.

_numbers = itertools.count(1)
_cursors: dict[str, str] = {}
_imports: list[dict[str, Any]] = []
# Those that may not be over yet, the oldest first.
_batches: list[str] = []
MAX_BATCHES = 20
_lock = threading.Lock()


@schemathesis.hook
def before_call(context: HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    """Gives a request that should be served what it needs of the present state."""
    if case.meta is None:
        return
    operation = case.operation.definition.raw.get("operationId")
    number = next(_numbers)
    # What a stateful test asks for is what an earlier answer named.
    is_sequence = case.meta.phase.name is TestPhase.STATEFUL
    if operation == "deleteTenant" and not is_sequence and case.path_parameters.get("tenant") == "demo":
        # All else is about this tenant.
        case.path_parameters["tenant"] = _make_tenant(f"doomed-{number}")
    if operation == "revokeAdminToken" and (
        case.meta.generation.mode.is_positive and not is_sequence
        or str(case.path_parameters.get("name")).startswith("contract-")
    ):
        # The tokens of the roles are needed to the end.
        case.path_parameters["name"] = _make_admin_token(f"doomed-{number}")
    if not case.meta.generation.mode.is_positive:
        return
    if "Idempotency-Key" in case.headers:
        # A key is that of one request; another body under it is a conflict.
        case.headers["Idempotency-Key"] = f"{number}-{case.headers['Idempotency-Key']}"[:255].rstrip()
    for name in ("cursor", "page_token"):
        if case.query and case.query.get(name):
            # Cursors are opaque: what comes from nowhere is refused.
            known = _cursors.get(_list(case))
            if known:
                case.query[name] = known
            else:
                del case.query[name]
    if "topic" in case.path_parameters:
        # The client takes the `%1D` of a name for an escape that somebody made before.
        case.path_parameters["topic"] = case.path_parameters["topic"].replace("%", "~")
    if isinstance(case.body, dict):
        _prepare_body(case, operation, number)
    if not is_sequence and case.path_parameters.get("tenant", "demo") == "demo":
        _prepare_path(case, operation, number)
    if operation == "lookUpNotificationKey":
        name = _group_name(number, case.query["notification_key_name"])
        _make_legacy_group(name, "first-device")
        case.query["notification_key_name"] = name


def _group_name(number: int, name: str) -> str:
    """A name that no other request has, in the bytes that a name may take; a schema counts characters."""
    return f"{number}-{name}".encode()[:1024].decode(errors="ignore")


# The members that name a message's target, in each form; a message has exactly one, which its schema says in words.
REST_TARGETS = ("token", "tokens", "fid", "fids", "topic", "condition", "device_group")
LEGACY_TARGETS = ("to", "registration_ids", "condition", "notification_key")
V1_TARGETS = ("token", "fid", "topic", "condition")


def _leave_one_target(message: dict[str, Any], targets: tuple[str, ...], number: int) -> None:
    """Takes all targets but one from a message, another kind each time; one that has none gets the first."""
    given = [name for name in targets if name in message]
    kept = given[number % len(given)] if given else targets[0]
    for name in given:
        if name != kept:
            del message[name]
    if kept == "notification_key" or not given:
        # The key of a group is any text beside another target, but has to be one of a device or a group alone.
        message[kept] = "first-device"


@functools.cache
def _rest_messages() -> jsonschema_rs.Draft202012Validator:
    document = yaml.safe_load((Path(__file__).resolve().parents[2] / "openapi/gateway.yaml").read_text())
    schema = {"$ref": "#/components/schemas/Message", "components": document["components"]}
    return jsonschema_rs.Draft202012Validator(schema)


def _prepare_body(case: Case, operation: str, number: int) -> None:
    body = case.body
    is_rest = operation == "explainMessage" and _rest_messages().is_valid(body)
    if operation == "sendMessage" or is_rest:
        _leave_one_target(body, REST_TARGETS, number)
    elif operation == "explainMessage" or (operation == "sendLegacyMessage" and case.media_type == "application/json"):
        _leave_one_target(body, LEGACY_TARGETS, number)
    elif operation == "sendV1Message" and isinstance(body.get("message"), dict):
        _leave_one_target(body["message"], V1_TARGETS, number)
    if operation == "createBatch":
        # Recipients are named, or follow in parts; the schema says so in words.
        if body.get("open"):
            body.pop("to", None)
        else:
            body.setdefault("to", {"tokens": ["first-device"]})
    for message in (body, body.get("message"), body.get("to")):
        if isinstance(message, dict) and "condition" in message:
            # The grammar of conditions is no regular expression.
            message["condition"] = f"'news-{number}' in topics && ('a' in topics || 'b' in topics)"
    if operation == "explainMessage":
        # The parameter says which of the two forms the body has.
        case.query["form"] = "rest" if is_rest else "legacy"
    elif operation == "createKey" and "key" in body:
        _prepare_import(case, number)
    elif operation == "createAdminToken" and "expires_at" in body:
        # A time in the past is refused.
        body["expires_at"] = "9999-12-31T23:59:59Z"
    elif operation == "putV1Credential":
        # A key pair, and a server that knows it, can't be made up. Credentials without a key need a configuration.
        for member in ("external_account", "metadata_server", "project_id"):
            body.pop(member, None)
        body["service_account"] = {**body.get("service_account", {}), **SERVICE_ACCOUNT}
    elif operation == "changeNotificationKey" and body["operation"] == "create":
        body["notification_key_name"] = _group_name(number, body["notification_key_name"])
    elif operation == "changeNotificationKey":
        name = f"made-{number}"
        body["notification_key"] = _make_legacy_group(name, body["registration_ids"][0])
        if "notification_key_name" in body:
            # FCM knows no such key where the name is another group's.
            body["notification_key_name"] = name


def _prepare_import(case: Case, number: int) -> None:
    """A key whose checksum is right: a new one, one that is there already, or that one with other properties."""
    if number % 3 == 0 and _imports:
        case.body = copy.deepcopy(_imports[-1])
    elif number % 3 == 1 and _imports:
        case.body["key"] = _imports[-1]["key"]
    else:
        text = f"fgw_k{number:09}_{hashlib.sha256(str(number).encode()).hexdigest()[:43]}"
        case.body["key"] = f"{text}_{_base62(zlib.crc32(text.encode()), 6)}"
        _imports.append(copy.deepcopy(case.body))


def _base62(number: int, width: int) -> str:
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


def _list(case: Case) -> str:
    """Which list a case continues: an operation's, of one tenant or another."""
    return f"{case.operation.label} {sorted(case.path_parameters.items())}"


def _prepare_path(case: Case, operation: str, number: int) -> None:
    path = case.path_parameters
    if operation in ("revokeKey", "rotateKey"):
        path["key"] = _make_key()
    elif operation in ("addDeviceGroupMembers", "removeDeviceGroupMembers", "deleteDeviceGroup", "getDeviceGroup"):
        path["name"] = _make_group(f"made-{number}")
    elif operation in ("putBatchPart", "startBatch"):
        path["batch"] = _make_batch({"open": True})
    elif "batch" in path:
        path["batch"] = _make_batch({"to": {"tokens": ["first-device"]}})
        if operation in ("deleteBatch", "resumeBatch"):
            _change_batch(path["batch"], "cancel" if operation == "deleteBatch" else "pause")


@schemathesis.hook
def after_call(context: HookContext, case: Case, response: Response) -> None:
    """Counts what was tried, and remembers what later requests need."""
    _count(case, str(response.status_code))
    if response.status_code == 200 and case.operation.method == "get":
        content = problem(response)
        for name in ("next_cursor", "resume_cursor", "nextPageToken"):
            if name in content:
                _cursors[_list(case)] = content[name]
    elif response.status_code == 202 and case.operation.definition.raw.get("operationId") == "createBatch":
        _note_batch(problem(response)["id"])
    elif response.status_code == 204 and case.operation.definition.raw.get("operationId") == "deleteTenant":
        # A tenant that is made anew has other things to list.
        _cursors.clear()
    elif (
        response.status_code == 201
        and case.operation.definition.raw.get("operationId") == "createAdminToken"
        and case.meta.phase.name is not TestPhase.STATEFUL
    ):
        # There is room for so many.
        _ask("DELETE", f"{ADMIN_URL}/admin/v1/admin-tokens/{problem(response)['name']}", ADMIN_TOKEN, {})


# What the tests ask of the gateway themselves.


def _ask(method: str, url: str, credential: str, body: object) -> dict[str, Any]:
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode(),
        method=method,
        headers={"Authorization": f"Bearer {credential}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=180) as response:
        return json.loads(response.read() or b"{}")


def _make_admin_token(name: str) -> str:
    return _ask("POST", f"{ADMIN_URL}/admin/v1/admin-tokens", ADMIN_TOKEN, {"name": name, "role": "viewer"})["name"]


def _make_tenant(name: str) -> str:
    _ask("PUT", f"{ADMIN_URL}/admin/v1/tenants/{name}", ADMIN_TOKEN, {})
    return name


def _make_key() -> str:
    return _ask("POST", f"{ADMIN_URL}/admin/v1/tenants/demo/keys", ADMIN_TOKEN, {"scopes": ["audit:read"]})["id"]


def _make_group(name: str) -> str:
    _ask("PUT", f"{DATA_URL}/v1/tenants/demo/device-groups/{name}", KEYS["full"], {"tokens": ["first-device"]})
    return name


def _make_batch(recipients: dict[str, Any]) -> str:
    """A batch that is not sent soon."""
    due = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    body = {"message": {"data": {"a": "1"}}, "send_at": due.strftime("%Y-%m-%dT%H:%M:%SZ"), **recipients}
    batch = _ask("POST", f"{DATA_URL}/v1/tenants/demo/batches", KEYS["full"], body)["id"]
    _note_batch(batch)
    return batch


def _note_batch(batch: str) -> None:
    """Cancels an older batch if there are many: a tenant may have 100 that are not over."""
    with _lock:
        _batches.append(batch)
        oldest = _batches.pop(0) if len(_batches) > MAX_BATCHES else None
    if oldest:
        _change_batch(oldest, "cancel")


def _change_batch(batch: str, change: str) -> None:
    try:
        _ask("POST", f"{DATA_URL}/v1/tenants/demo/batches/{batch}/{change}", KEYS["full"], {})
    except urllib.error.HTTPError as error:
        # It is over, or deleted.
        if error.code not in (404, 409):
            raise


def _make_legacy_group(name: str, token: str) -> str:
    body = {"operation": "create", "notification_key_name": name, "registration_ids": [token]}
    return _ask("POST", f"{DATA_URL}/fcm/notification", KEYS["full"], body)["notification_key"]


# What was tried.

_counts: dict[str, Counter[str]] = defaultdict(Counter)


def _count(case: Case, status: str) -> None:
    with _lock:
        counts = _counts[case.operation.label]
        if case.meta is None:
            counts["probes"] += 1
            return
        if status.isdigit():
            counts[case.meta.phase.name.value.lower()] += 1
            counts[case.meta.generation.mode.value.lower()] += 1
        counts[status] += 1


@atexit.register
def _write_counts() -> None:
    COUNTS.write_text(json.dumps(_counts))
