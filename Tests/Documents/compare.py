"""Compares what a document shows with what its command printed: word for word but for what no two runs share."""

from __future__ import annotations

import json
import re

ANYTHING = "…"

# What differs from run to run, and what stands in its place before two texts are compared.
_VARIABLE = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"\d+:\d{10,}%[0-9a-f]+"), "<message-id>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?"), "<time>"),
    (re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT"), "<time>"),
    (re.compile(r"fgw_[a-z0-9]{10}_[A-Za-z0-9]+_[A-Za-z0-9]+"), "<api-key>"),
    (re.compile(r"\b[0-9a-f]{12,}\b"), "<hex>"),
    (re.compile(r"(?<![\d.])\d+\.\d+\.\d+(?![\d.])"), "<version>"),
    (re.compile(r'(?<="multicast_id":)\s*\d+'), "<number>"),
    (re.compile(r'(?<="retry_after":)\s*\d+'), "<number>"),
    (re.compile(r"(?<![\d.])\d{13,}(?![\d.])"), "<number>"),
]
# Members of JSON of which only the kind is compared.
_VARIABLE_MEMBERS = {
    "id", "fingerprint", "cursor", "next_cursor", "resume_cursor", "request_id", "trace_id", "span_id", "multicast_id",
    "notification_key", "time", "since", "created_at", "updated_at", "expires_at", "writer", "key", "key_id", "ts",
    "remaining", "reset_s",
}


def differences(language: str, shown: str, printed: str) -> str:
    """What differs, in words; empty when nothing does."""
    if language == "json":
        try:
            expected, found = _values(shown), _values(printed)
        except ValueError as error:
            return f"not JSON: {error}"
        if len(expected) != len(found):
            return f"{len(expected)} values are shown, {len(found)} were printed"
        return next((each for each in map(lambda pair: _json("", *pair), zip(expected, found)) if each), "")
    return _text(shown.strip().splitlines(), printed.strip().splitlines())


def _values(text: str) -> list[object]:
    """The JSON values that a text consists of, one or several."""
    decoder, values, rest = json.JSONDecoder(), [], text.strip()
    while rest:
        value, end = decoder.raw_decode(rest)
        values.append(value)
        rest = rest[end:].strip()
    return values


def _json(path: str, expected: object, found: object) -> str:
    if expected == ANYTHING:
        return ""
    if isinstance(expected, dict) and isinstance(found, dict):
        missing = expected.keys() - found.keys() - {ANYTHING}
        further = set() if ANYTHING in expected else found.keys() - expected.keys()
        if missing or further:
            return f"{path or '/'}: shown but not there {sorted(missing)}, there but not shown {sorted(further)}"
        for name, value in expected.items():
            if name == ANYTHING:
                continue
            if name in _VARIABLE_MEMBERS and type(value) is type(found[name]) and not isinstance(value, (dict, list)):
                continue
            if difference := _json(f"{path}/{name}", value, found[name]):
                return difference
        return ""
    if isinstance(expected, list) and isinstance(found, list):
        if expected and expected[-1] == ANYTHING:
            expected, found = expected[:-1], found[:len(expected) - 1]
        if len(expected) != len(found):
            return f"{path or '/'}: {len(expected)} elements are shown, {len(found)} are there"
        for index, (one, other) in enumerate(zip(expected, found)):
            if difference := _json(f"{path}/{index}", one, other):
                return difference
        return ""
    if isinstance(expected, str) and isinstance(found, str):
        return "" if _pattern(expected).fullmatch(_plain(found)) else f"{path or '/'}: {expected!r} is shown, {found!r} is there"
    if type(expected) is type(found) and (expected == found or _plain(str(expected)) == _plain(str(found))):
        return ""
    return f"{path or '/'}: {expected!r} is shown, {found!r} is there"


def _text(expected: list[str], found: list[str]) -> str:
    """Compares line by line; a line that is only an ellipsis stands for any lines."""
    # By the table of which beginnings of the one fit which beginnings of the other.
    reachable = {0}
    for line in expected:
        if line.strip() == ANYTHING:
            reachable = set(range(min(reachable), len(found) + 1))
            continue
        pattern = _pattern(line)
        following = {at + 1 for at in reachable if at < len(found) and pattern.fullmatch(_plain(found[at]))}
        if not following:
            near = max(reachable)
            return f"shown is\n    {line}\nbut there is\n    {found[near] if near < len(found) else '(nothing more)'}"
        reachable = following
    if len(found) in reachable:
        return ""
    return f"further lines were printed, from\n    {found[max(reachable)]}"


def _plain(text: str) -> str:
    for pattern, name in _VARIABLE:
        text = pattern.sub(name, text)
    return re.sub(r"\s+", " ", text.rstrip())


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in _plain(text).split(ANYTHING)), re.DOTALL)
