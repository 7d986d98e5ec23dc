#!/usr/bin/env python3
"""Checks that every target imports only what it may know.

    .ci/checks/imports.py [ROOT]        check the project
    .ci/checks/imports.py --self-test   check the check

The table below is the one place where the arrows between targets are written down for machines.
"""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from swift_source import Finding, code_lines, swift_files

# Modules of the platform and the language: everybody may use them.
ALWAYS = ["Swift", "Foundation*", "Synchronization", "Glibc", "Musl", "Darwin", "Dispatch"]

# For each target: the modules of this project and the modules from outside that it may import. `*` stands for any
# ending. Arrows point down only, and targets of one level never see each other.
TARGETS: dict[str, tuple[list[str], list[str]]] = {
    # Level 0: know nothing of the gateway.
    "StrictJSON": ([], ["NIOCore"]),
    "EventLoopHTTP": (
        ["CNGHTTP2"],
        ["HTTPTypes", "Logging", "NIOCore", "NIOExtras", "NIOHTTP1", "NIOPosix", "NIOSSL", "NIOTLS"],
    ),
    "PrometheusMetrics": ([], ["CoreMetrics"]),
    "RedisClient": ([], ["Logging", "NIOCore", "NIOPosix", "NIOSSL"]),
    "GatewaySupport": ([], ["Crypto", "Logging", "Metrics", "ServiceLifecycle"]),
    "CLibPQ": ([], []),
    "CNGHTTP2": ([], []),
    "CProcess": ([], []),
    "CFiles": ([], []),
    # Level 1: the protocols, and the audit, which knows none of them.
    "FCMModel": (["GatewaySupport", "StrictJSON"], ["Crypto", "NIOCore"]),
    "GatewayAudit": (
        ["GatewaySupport", "StrictJSON"],
        ["Crypto", "Logging", "Metrics", "NIOCore", "ServiceLifecycle"],
    ),
    # Level 2: the gateway's rules, and a fake FCM.
    "GatewayCore": (
        ["FCMModel", "GatewayAudit", "GatewaySupport"],
        ["Crypto", "Logging", "Metrics", "ServiceLifecycle"],
    ),
    "FCMEmulator": (
        [],
        ["CoreMetrics", "Crypto", "CryptoExtras", "HTTPTypes", "NIOConcurrencyHelpers", "Hummingbird", "HummingbirdCore",
         "JWTKit", "Logging", "NIO*", "ServiceLifecycle", "SwiftASN1", "X509"],
    ),
    # Level 3: the adapters.
    "GatewayUpstream": (
        ["EventLoopHTTP", "FCMModel", "GatewayCore", "StrictJSON"],
        ["HTTPTypes", "JWTKit", "Logging", "Metrics", "NIOCore", "NIOSSL", "ServiceLifecycle"],
    ),
    "GatewayStorage": (
        ["CLibPQ", "FCMModel", "GatewayCore"],
        ["Crypto", "GRDB", "GRDBSQLite", "Logging", "Metrics", "NIOCore", "NIOPosix", "ServiceLifecycle"],
    ),
    "RedisLimits": (
        ["GatewayCore", "RedisClient"],
        ["Crypto", "Logging", "ServiceLifecycle"],
    ),
    "GatewayTracing": (
        ["EventLoopHTTP", "GatewayCore", "StrictJSON"],
        ["HTTPTypes", "Logging", "Metrics", "NIOCore", "NIOPosix", "NIOSSL", "ServiceLifecycle"],
    ),
    "GatewayHTTP": (
        ["CFiles", "EventLoopHTTP", "FCMModel", "GatewayCore", "StrictJSON"],
        ["CoreMetrics", "HTTPTypes", "Logging", "Metrics", "NIOCore"],
    ),
    # Level 4: what `serve` is, without the command line.
    "GatewayService": (
        ["CProcess", "EventLoopHTTP", "FCMModel", "GatewayCore", "GatewayHTTP", "GatewayStorage", "GatewayTracing",
         "GatewayUpstream", "PrometheusMetrics", "RedisClient", "RedisLimits", "StrictJSON"],
        ["CoreMetrics", "Crypto", "Logging", "Metrics", "NIOCore", "NIOPosix", "NIOSSL",
         "ServiceLifecycle", "UnixSignals", "Yams"],
    ),
    # Level 5: the executables. Only the one for development knows the emulator.
    "FCMGateway": (
        ["EventLoopHTTP", "FCMModel", "GatewayCore", "GatewayService", "GatewayStorage", "GatewayUpstream", "StrictJSON"],
        ["ArgumentParser", "Crypto", "HTTPTypes", "Logging", "NIO*", "SwiftASN1", "UnixSignals", "X509", "Yams"],
    ),
    "FCMGatewayDev": (
        ["EventLoopHTTP", "FCMEmulator", "GatewayCore", "GatewayService", "GatewayUpstream"],
        ["ArgumentParser", "Crypto", "Logging", "NIOCore", "ServiceLifecycle", "UnixSignals"],
    ),
}

# Test targets whose modules of this project do not follow from the target they test.
# What they use from outside is their own affair.
TEST_TARGETS: dict[str, list[str]] = {
    "GatewayTestKit": ["FCMModel", "GatewayCore", "GatewayStorage", "StrictJSON"],
    "ProcessTestKit": [],
    "RedisTestKit": [],
    "VectorTestKit": ["StrictJSON"],
    # The fake FCM answers what the senders ask.
    "GatewayUpstreamTests": ["EventLoopHTTP", "FCMEmulator", "FCMModel", "GatewayCore", "GatewayUpstream", "StrictJSON"],
    "EndToEndTests": ["*"],
    # What reads bytes from outside, wherever it is, and the emulator to compare with.
    "FuzzTests": ["EventLoopHTTP", "FCMEmulator", "FCMModel", "GatewayCore", "GatewayHTTP", "GatewayService",
                  "GatewayUpstream", "RedisClient", "StrictJSON"],
}

IMPORT = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*"  # @testable, @preconcurrency, @_spi(X)
    r"(?:(?:public|package|internal|fileprivate|private)\s+)?"
    r"import\s+(?:(?:typealias|struct|class|enum|protocol|let|var|func)\s+)?"
    r"`?(\w+)`?"
)

OURS = set(TARGETS) | set(TEST_TARGETS)


def imported_modules(source: str) -> list[tuple[int, str]]:
    """The modules a source imports, with the lines that do."""
    modules = []
    for number, line in enumerate(code_lines(source), start=1):
        # Several imports on a line are separated by semicolons.
        for statement in line.split(";"):
            if match := IMPORT.match(statement):
                modules.append((number, match.group(1)))
    return modules


def matches(module: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(module, pattern) for pattern in patterns)


def is_allowed(folder: str, target: str, module: str) -> bool:
    """Whether a target, found under `Sources`, `Tests` or `Benchmarks`, may import a module."""
    if folder == "Benchmarks" or module == target or matches(module, ALWAYS):
        return True
    if folder == "Sources":
        ours, outside = TARGETS[target]
        return matches(module, ours if module in OURS else outside)
    if module not in OURS or module.endswith("TestKit"):
        return True
    if target in TEST_TARGETS:
        return matches(module, TEST_TARGETS[target])
    # A target's tests also name what its interface names, which is what the target itself may import.
    subject = target.removesuffix("Tests")
    return module == subject or matches(module, TARGETS[subject][0])


def is_known(folder: str, target: str) -> bool:
    if folder == "Sources":
        return target in TARGETS
    return folder == "Benchmarks" or target in TEST_TARGETS or target.removesuffix("Tests") in TARGETS


def check_source(path: Path, folder: str, target: str, source: str) -> list[Finding]:
    if not is_known(folder, target):
        return [Finding(path, 1, f"target {target} is not in the table of .ci/checks/imports.py")]
    return [
        Finding(path, line, f"{target} may not import {module} (see .ci/checks/imports.py)")
        for line, module in imported_modules(source)
        if not is_allowed(folder, target, module)
    ]


def ghosts(manifest: str) -> list[Finding]:
    """Targets of the tables that the package does not have."""
    known = set(re.findall(r'\.(?:\w*[tT]arget|systemLibrary)\(\s*name: "(\w+)"', manifest))
    return [
        Finding(Path(".ci/checks/imports.py"), 1, f"the package has no target {target}")
        for target in sorted(OURS - known)
    ]


def check(root: Path) -> list[Finding]:
    findings = ghosts((root / "Package.swift").read_text(encoding="utf-8"))
    for file in swift_files(root, "Sources", "Tests", "Benchmarks"):
        path = file.relative_to(root)
        if len(path.parts) < 3:
            findings.append(Finding(path, 1, "belongs to no target"))
            continue
        findings += check_source(path, path.parts[0], path.parts[1], file.read_text(encoding="utf-8"))
    return findings


def self_test() -> None:
    source = '''// import Wrong
/* import Wrong /* nested */ import Wrong */
import StrictJSON
@testable import FCMModel
package import struct NIOCore.ByteBuffer
@_spi(Testing) @preconcurrency internal import Crypto
#if canImport(Glibc)
    import Glibc; import Musl
#endif
let a = "import Wrong \\(f("import Wrong")) import Wrong"
let b = """
import Wrong \\(
import Wrong)
"""
let c = #"""
import Wrong \\(" "
"""#
let d = #"\\"#; let important = 1
import Last
'''
    expected = [
        (3, "StrictJSON"), (4, "FCMModel"), (5, "NIOCore"), (6, "Crypto"), (8, "Glibc"), (8, "Musl"), (19, "Last"),
    ]
    assert imported_modules(source) == expected, imported_modules(source)

    cases = [
        ("Sources", "FCMModel", "StrictJSON", True),
        ("Sources", "FCMModel", "GatewayCore", False),
        ("Sources", "FCMModel", "FoundationEssentials", True),
        ("Sources", "FCMModel", "Logging", False),
        ("Sources", "StrictJSON", "NIOPosix", False),
        ("Sources", "GatewayAudit", "GatewaySupport", True),
        ("Sources", "GatewayAudit", "FCMModel", False),
        ("Sources", "GatewayAudit", "GatewayCore", False),
        ("Sources", "FCMModel", "GatewayAudit", False),
        ("Sources", "GatewayCore", "GatewayAudit", True),
        ("Sources", "GatewayCore", "StrictJSON", False),
        ("Sources", "GatewayCore", "NIOPosix", False),
        ("Sources", "GatewayHTTP", "HummingbirdRouter", False),
        ("Sources", "GatewayHTTP", "Crypto", False),
        ("Sources", "GatewayHTTP", "GatewayStorage", False),
        ("Sources", "GatewayUpstream", "GatewayHTTP", False),
        ("Sources", "GatewayHTTP", "GatewayTestKit", False),
        ("Sources", "FCMEmulator", "FCMModel", False),
        ("Sources", "FCMGateway", "FCMEmulator", False),
        ("Sources", "FCMGatewayDev", "FCMEmulator", True),
        ("Tests", "GatewayHTTPTests", "GatewayHTTP", True),
        ("Tests", "GatewayHTTPTests", "GatewayCore", True),
        ("Tests", "GatewayHTTPTests", "GatewayTestKit", True),
        ("Tests", "GatewayHTTPTests", "GatewayStorage", False),
        ("Tests", "FCMEmulatorTests", "HummingbirdTesting", True),
        ("Tests", "EndToEndTests", "FCMEmulator", True),
        ("Tests", "GatewayTestKit", "GatewayStorage", True),
        ("Tests", "ProcessTestKit", "GatewayCore", False),
        ("Benchmarks", "Micro", "GatewayCore", True),
    ]
    for folder, target, module, allowed in cases:
        assert is_allowed(folder, target, module) == allowed, (folder, target, module)

    targets = [f'.target(name: "{target}")' for target in OURS - {"StrictJSON"}] + ['.systemLibrary(name: "CProcess")']
    assert [finding.message for finding in ghosts("\n".join(targets))] == ["the package has no target StrictJSON"]

    assert check_source(Path("x"), "Sources", "Nobody", "")[0].message.startswith("target Nobody")
    findings = check_source(Path("a.swift"), "Sources", "StrictJSON", "\nimport GRDB\n")
    assert [str(finding) for finding in findings] == [
        "a.swift:2: StrictJSON may not import GRDB (see .ci/checks/imports.py)"
    ], findings


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
        findings = check(root)
        for finding in findings:
            print(finding, file=sys.stderr)
        sys.exit(1 if findings else 0)
