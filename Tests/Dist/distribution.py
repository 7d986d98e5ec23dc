"""What the tests of `make dist` have in common: the things that it has made, and how they are read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / ".build/dist"
PROGRAMS = Path(sys.executable).parent
LIMIT_S = 600


def run(*command: str | Path, status: int = 0, **options: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, **options)
    assert done.returncode == status, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def made(pattern: str) -> Path:
    """The one file of .build/dist with such a name."""
    found = sorted(DIST.glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}; `make dist` makes one"
    return found[0]


def documents(text: str) -> dict[tuple[str, str], dict]:
    """The objects of a rendered chart, by kind and name."""
    found = [document for document in yaml.safe_load_all(text) if document]
    objects = {(document["kind"], document["metadata"]["name"]): document for document in found}
    assert len(objects) == len(found), "an object is there twice"
    return objects
