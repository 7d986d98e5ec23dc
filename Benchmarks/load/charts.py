#!/usr/bin/env python3
"""Draws the charts of docs/performance.md of what `make bench` has measured.

    charts.py RESULT.json [FOLDER]     FOLDER is docs/images

The charts have no background and take their colours from the reader's scheme, light or dark.
"""

from __future__ import annotations

import json
import math
import sys
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 14px }
  .end { text-anchor: end } .middle { text-anchor: middle }
  .own { fill: #0969da } .other { fill: #8c959f } .grid { stroke: #d0d7de }
  .line { stroke: #0969da; fill: none; stroke-width: 2 } .spread { stroke: #0969da; stroke-width: 1 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .own { fill: #58a6ff } .other { fill: #6e7681 } .grid { stroke: #30363d }
    .line, .spread { stroke: #58a6ff }
  }
"""
NAMES = {"legacy": "a legacy send", "v1": "a send by HTTP v1", "nginx": "nginx, HTTP/1.1 out", "haproxy": "HAProxy, TLS and HTTP/2 out"}


def svg(width: int, height: int, label: str, parts: list[str]) -> str:
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            f'aria-label="{escape(label)}">')
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def bars(title: str, rows: list[tuple[str, float, str, str]]) -> str:
    """Horizontal bars: name, value, the value's text, class."""
    left, right, step = 250, 150, 30
    width, top = 720, 40
    largest = max(value for _, value, _, _ in rows)
    parts = [f'<text x="8" y="22" class="title">{escape(title)}</text>']
    for number, (name, value, text, kind) in enumerate(rows):
        y = top + number * step
        length = (width - left - right) * value / largest
        parts.append(f'<text x="{left - 10}" y="{y + 15}" class="end">{escape(name)}</text>')
        parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="20" rx="3" class="{kind}"/>')
        parts.append(f'<text x="{left + length + 8:.1f}" y="{y + 15}">{escape(text)}</text>')
    return svg(width, top + len(rows) * step + 8, title, parts)


def lines(series: list[dict[str, Any]]) -> str:
    """One small chart for each series, beside each other; the lower axis is logarithmic."""
    width, height, columns = 340, 210, 2
    parts = []
    for number, one in enumerate(series):
        x0, y0 = 8 + number % columns * (width + 24), 8 + number // columns * (height + 24)
        points = one["points"]
        top = max(high for _, _, _, high in points) * 1.1
        left, bottom = x0 + 50, y0 + height - 40

        def x(value: float) -> float:
            low, high = math.log(points[0][0]), math.log(points[-1][0])
            return left + (width - 80) * (math.log(value) - low) / (high - low)

        def y(value: float) -> float:
            return bottom - (height - 80) * value / top

        parts.append(f'<text x="{x0}" y="{y0 + 14}" class="title">µs of processor time</text>')
        for part in (0, 0.5, 1):
            value = top * part
            parts.append(f'<line x1="{left}" x2="{left + width - 80}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="grid"/>')
            parts.append(f'<text x="{left - 6}" y="{y(value) + 4:.1f}" class="end">{value:.0f}</text>')
        path = " ".join(f"{'L' if index else 'M'}{x(value):.1f} {y(median):.1f}" for index, (value, median, _, _) in enumerate(points))
        parts.append(f'<path d="{path}" class="line"/>')
        for value, median, low, high in points:
            parts.append(f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{y(low):.1f}" y2="{y(high):.1f}" class="spread"/>')
            parts.append(f'<circle cx="{x(value):.1f}" cy="{y(median):.1f}" r="3.5" class="own"/>')
            parts.append(f'<text x="{x(value):.1f}" y="{bottom + 16}" class="middle">{value:,}</text>')
        parts.append(f'<text x="{left + (width - 80) / 2}" y="{bottom + 34}" class="middle">{escape(one["axis"])}</text>')
    rows = (len(series) + columns - 1) // columns
    return svg(16 + columns * (width + 24), 16 + rows * (height + 24), "What a send costs as a gateway grows", parts)


def draw(result: dict[str, Any], folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    charts = {}
    if costs := result.get("cpu_us"):
        rows = []
        for what, yardstick in (("v1", "haproxy"), ("legacy", "nginx")):
            for name in (what, yardstick):
                ratio = f" ({costs[name] / costs[yardstick]:.1f} ×)" if name == what else ""
                rows.append((NAMES[name], costs[name], f"{costs[name]:.0f} µs{ratio}", "own" if name == what else "other"))
        charts["send-cost.svg"] = bars("Processor time of one send", rows)
    if stages := result.get("stages"):
        rows = [(stage, value, f"{value:,.0f}", "own") for stage, value in sorted(stages["v1"].items(), key=lambda row: -row[1])]
        charts["send-stages.svg"] = bars("A send by HTTP v1: instructions on the event loop", rows)
    if growth := result.get("growth"):
        charts["send-growth.svg"] = lines(growth)
    for name, text in charts.items():
        (folder / name).write_text(text)
    return [folder / name for name in charts]


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 64
    folder = Path(sys.argv[2]) if len(sys.argv) == 3 else ROOT / "docs" / "images"
    for path in draw(json.loads(Path(sys.argv[1]).read_text()), folder):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
