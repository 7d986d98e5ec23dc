"""The page that a measurement ends with: rows of what was asked for, the machine, tables, and what went wrong."""

from __future__ import annotations

import datetime
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from loadbench import HERE, BenchError, Comparison

ROOT = HERE.parents[1]


@dataclass
class Row:
    """One line of the result."""

    what: str
    must: str
    measured: str


@dataclass
class Report:
    """Everything that came out."""

    rows: list[Row] = field(default_factory=list)
    tables: list[tuple[str, str]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    parts: str = ""
    # What else there is to know of the machine.
    facts: list[tuple[str, str]] = field(default_factory=list)

    def add(self, rows: list[tuple[str, str]], measure: Callable[[], list[str]]) -> None:
        """Measures some rows; a failure says so in them, and the others are measured all the same."""
        try:
            values = measure()
        except (BenchError, subprocess.SubprocessError) as error:
            self.complaints.append(f"{rows[0][0]}: {error}")
            values = [f"not measured: {str(error).splitlines()[0]}"] * len(rows)
        for (what, must), value in zip(rows, values, strict=True):
            self.rows.append(Row(what, must, value))
            print(f"{what}: {value}", flush=True)

    def table(self, title: str, comparison: Comparison) -> None:
        self.tables.append((title, comparison.markdown()))
        self.complaints += comparison.complaints

    def page(self, title: str, rounds: int, seconds: int) -> str:
        """All of it in Markdown."""
        lines = [f"# {title}", ""]
        lines += [f"- {name}: {value}" for name, value in machine() + self.facts]
        load = os.getloadavg()
        lines += [
            f"- rounds: {rounds} of {seconds} s; medians; load average at the end {load[0]:.1f}",
            "",
            "| what | must | measured |",
            "| --- | --- | --- |",
            *(f"| {row.what} | {row.must} | {row.measured.replace('|', '/')} |" for row in self.rows),
            "",
            "Compare ratios, not absolute figures: machines differ, and so does one machine from hour to hour. Where"
            " `cores` is well below 1, the load was the limit; then only processor time tells.",
        ]
        if self.parts:
            lines += ["", "## Parts", "", self.parts]
        for heading, table in self.tables:
            lines += ["", f"## {heading}", "", table]
        if self.complaints:
            lines += ["", "## What went wrong", "", *(f"- {' '.join(text.split())}" for text in self.complaints)]
        return "\n".join(lines) + "\n"


def first_line(*command: str) -> str:
    """What a program says first; nothing if it is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    except OSError:
        return ""
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0].strip() if lines else ""


def revision() -> str:
    """The commit that was measured."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT,
                          timeout=60)
    if done.returncode != 0:
        return "unknown"
    changed = first_line("git", "status", "--porcelain", "--untracked-files=no")
    return done.stdout.strip() + (", changed" if changed else "")


def machine() -> list[tuple[str, str]]:
    processor = memory = system = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
            break
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            memory = f"{int(line.split()[1]) / 1024 / 1024:.1f} GiB"
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("PRETTY_NAME="):
            system = line.partition("=")[2].strip('"')
    path = os.environ["PATH"] + ":/usr/sbin"
    return [
        ("date", datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("revision", revision()),
        ("machine", f"{processor}, {os.cpu_count()} cores, {memory}"),
        ("system", f"{system}, Linux {platform.release()}"),
        ("Swift", first_line("swift", "--version")),
        ("nginx", first_line(shutil.which("nginx", path=path) or "nginx", "-v").rpartition("/")[2]),
        ("HAProxy", first_line(shutil.which("haproxy", path=path) or "haproxy", "-v").partition(" - ")[0].removeprefix("HAProxy version ")),
        ("wrk", first_line("wrk", "-v").partition(" [")[0].removeprefix("wrk ")),
        ("h2load", first_line("h2load", "--version").rpartition("/")[2]),
    ]
