"""How the processor time of a send grows with what a gateway has to hold and to send."""

from __future__ import annotations

import dataclasses
import json
import statistics
from pathlib import Path

from gateway import Gateway
from loadbench import HERE, BenchError, Comparison, Options, Request, Target
from sends import Sends

TENANTS = (1, 10, 100, 1_000)
DEVICES = (1, 1_000, 1_000_000)
BODY_BYTES = (512, 1_024, 2_048, 4_096)
LIST_LENGTHS = (1, 10, 100, 1_000)
EVENT_LOOPS = (1, 2)


@dataclasses.dataclass
class Series:
    """What a send costs at each value of one property, in microseconds of processor time."""

    name: str
    axis: str
    # Value of the property, median, lowest and highest round.
    points: list[tuple[int, float, float, float]]


class Growth:
    """Measures the series of one gateway; the settings of a series take turns in each round."""

    def __init__(self, sends: Sends, options: Options) -> None:
        self.sends = sends
        self.options = options
        self.folder = sends.processes.folder

    def all(self) -> list[Series]:
        gateway = self.sends.gateway("growth", self.sends.placement.gateway, {})
        legacy, v1 = self.sends.legacy_tenant(gateway, "legacy"), self.sends.v1_tenant(gateway, "v1")
        series = [
            self.series("devices", "devices, drawn at random", {n: self.of_devices(gateway, legacy, n) for n in DEVICES}),
            self.series("size", "bytes of the request's body", {n: self.of_size(gateway, legacy, n) for n in BODY_BYTES}),
            self.series("list-v1", "tokens of a list by HTTP v1 (cost of a token)",
                        {n: self.of_list(gateway, v1, n) for n in LIST_LENGTHS}, per_value=True, connections=2),
            self.series("tenants", "tenants that take turns", {n: self.of_tenants(gateway, n) for n in TENANTS}),
        ]
        gateway.stop()
        return [*series, self.of_loops()]

    def series(
        self, name: str, axis: str, targets: dict[int, Target], per_value: bool = False, connections: int = 32
    ) -> Series:
        options = dataclasses.replace(self.options, connections=connections)
        comparison = Comparison(self.sends.processes, list(targets.values()), options)
        comparison.run()
        if comparison.complaints:
            raise BenchError(comparison.complaints[0])
        points = []
        for value, target in targets.items():
            costs = [load.cpu_microseconds / (value if per_value else 1) for load in comparison.results[target.name].loads]
            points.append((value, statistics.median(costs), min(costs), max(costs)))
        return Series(name, axis, points)

    def script(self, name: str, lines: str) -> Path:
        path = self.folder / f"{name}.lua"
        path.write_text(lines)
        return path

    def of_devices(self, gateway: Gateway, request: Request, count: int) -> Target:
        text = (HERE / "tokens.lua").read_text().replace("999999", str(count - 1))
        return Target(f"devices-{count}", request, gateway.pid, lua=self.script(f"devices-{count}", text))

    def of_size(self, gateway: Gateway, request: Request, size: int) -> Target:
        message = json.loads(request.body.read_bytes())
        message["data"]["text"] = ""
        missing = size - len(json.dumps(message, separators=(",", ":")))
        # As ordinary text: words and blanks.
        message["data"]["text"] = ("word " * (missing // 5 + 1))[:max(0, missing)]
        body = self.folder / f"size-{size}.json"
        body.write_text(json.dumps(message, separators=(",", ":")))
        return Target(f"size-{size}", Request(request.url, request.headers, body), gateway.pid, lua=HERE / "tokens.lua")

    def of_list(self, gateway: Gateway, request: Request, length: int) -> Target:
        if length == 1:
            return Target("list-1", request, gateway.pid, lua=HERE / "tokens.lua")
        text = (HERE / "multicast.lua").read_text().replace("for j = 1, 1000 do", f"for j = 1, {length} do")
        return Target(f"list-{length}", request, gateway.pid, lua=self.script(f"list-{length}", text))

    def of_tenants(self, gateway: Gateway, count: int) -> Target:
        """A target whose requests come from each tenant in turn."""
        requests = [self.sends.legacy_tenant(gateway, f"tenant-{count}-{number}") for number in range(count)]
        rows = ",".join(
            '{"%s", "%s"}' % (request.url.removeprefix(gateway.url), request.headers["Authorization"]) for request in requests
        )
        text = f"""
local tenants, number = {{{rows}}}, 0
local before, after = wrk.body:match('^(.*"token":"[^"]-)%d%d%d%d%d%d%d(".*)$')
function request()
    number = number + 1
    local tenant = tenants[number % #tenants + 1]
    wrk.headers["Authorization"] = tenant[2]
    return wrk.format(nil, tenant[1], nil, before .. string.format("%07d", number % 1000000) .. after)
end
"""
        return Target(f"tenants-{count}", requests[0], gateway.pid, lua=self.script(f"tenants-{count}", text))

    def of_loops(self) -> Series:
        targets = {}
        for loops in EVENT_LOOPS:
            gateway = self.sends.gateway(f"loops-{loops}", [], {}, loops)
            request = self.sends.legacy_tenant(gateway, "bench")
            targets[loops] = Target(f"loops-{loops}", request, gateway.pid, lua=HERE / "tokens.lua")
        return self.series("loops", "event loops, not pinned to cores", targets)
