"""A gateway's sends beside proxies that do nothing else.

The yardstick of a legacy send is nginx: HTTP/1.1 in and out. That of a send by HTTP v1 is HAProxy: HTTP/1.1 in, TLS and
HTTP/2 out, as Google takes it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from gateway import Gateway
from loadbench import HERE, Placement, Processes, Request, Target, free_ports, start_stub, start_yardstick
from v1 import LIMITS, PROJECT, V1Bench

YARDSTICKS = {"legacy": "nginx", "v1": "haproxy"}


class Sends:
    """Starts what sends by either protocol, beside its yardstick, in front of upstreams that answer at once."""

    def __init__(self, processes: Processes, placement: Placement, program: Path) -> None:
        self.processes = processes
        self.placement = placement
        self.program = program
        self.stops: dict[str, Callable[[], None]] = {}
        self._legacy_port = 0
        self._v1: tuple[int, Path, str] | None = None

    def target(self, what: str, wrapper: list[str] | None = None, **settings: str) -> Target:
        """A target of this kind, started by a command if one is given."""
        prefix = wrapper if wrapper is not None else self.placement.gateway
        return {"nginx": self._nginx, "haproxy": self._haproxy, "legacy": self._legacy_send, "v1": self._v1_send}[what](
            prefix, settings
        )

    # Upstreams

    @property
    def legacy_port(self) -> int:
        if not self._legacy_port:
            (self._legacy_port,) = free_ports(1)
            start_stub(self.processes, self.placement, self._legacy_port)
        return self._legacy_port

    @property
    def v1(self) -> tuple[int, Path, str]:
        """The port of the upstream for HTTP v1, its certificate, and a key in PEM."""
        if self._v1 is None:
            (port,) = free_ports(1)
            certificate, key = V1Bench(self.processes, self.placement, self.program).certificate()
            self.processes.nginx(
                HERE / "stub-v1.conf", "stub-v1", self.placement.load, module="ngx_http_echo_module", port=port
            )
            self._v1 = port, certificate, key
        return self._v1

    # Targets

    def gateway(self, name: str, prefix: list[str], settings: dict[str, str], event_loops: int = 1) -> Gateway:
        """A gateway that may call either upstream."""
        port, certificate, _ = self.v1
        settings = {
            "GATEWAY_UPSTREAM_CA_FILE": str(certificate),
            "GATEWAY_UPSTREAM_ALLOWED_TOKEN_HOSTS": f"127.0.0.1:{port}",
            **settings,
        }
        gateway = Gateway(self.processes, self.program, prefix, name, event_loops, settings)
        self.stops[name] = gateway.stop
        return gateway

    def legacy_tenant(self, gateway: Gateway, name: str = "bench") -> Request:
        return gateway.tenant(name, f"http://127.0.0.1:{self.legacy_port}", LIMITS)

    def v1_tenant(self, gateway: Gateway, name: str = "bench-v1") -> Request:
        port, _, key = self.v1
        account = {
            "type": "service_account", "project_id": PROJECT, "private_key_id": "bench", "private_key": key,
            "client_email": f"bench@{PROJECT}.iam.gserviceaccount.com", "token_uri": f"https://127.0.0.1:{port}/token",
        }
        return gateway.tenant(name, f"https://127.0.0.1:{port}", LIMITS, account)

    def _legacy_send(self, prefix: list[str], settings: dict[str, str]) -> Target:
        gateway = self.gateway("legacy", prefix, settings)
        return Target("legacy", self.legacy_tenant(gateway), gateway.pid)

    def _v1_send(self, prefix: list[str], settings: dict[str, str]) -> Target:
        gateway = self.gateway("v1", prefix, settings)
        return Target("v1", self.v1_tenant(gateway), gateway.pid)

    def _nginx(self, prefix: list[str], settings: dict[str, str]) -> Target:
        (port,) = free_ports(1)
        if "valgrind" not in prefix:
            url, pid = start_yardstick(self.processes, self.placement, port, self.legacy_port)
        else:
            # Without a worker of its own, so that the one process is counted.
            text = (HERE / "proxy.conf").read_text().replace("daemon off;", "daemon off;\nmaster_process off;")
            single = self.processes.folder / "proxy-single.conf"
            single.write_text(text)
            process = self.processes.nginx(single, "proxy", prefix, port=port, stub=self.legacy_port)
            self.stops["nginx"] = lambda: self.processes.stop(process)
            url, pid = f"http://127.0.0.1:{port}", process.pid
        return Target("nginx", Request(url + "/fcm/send", {"Content-Type": "application/json"}), pid)

    def _haproxy(self, prefix: list[str], settings: dict[str, str]) -> Target:
        (port,) = free_ports(1)
        text = (HERE / "haproxy.cfg").read_text()
        config = self.processes.folder / "haproxy.cfg"
        config.write_text(text.replace("@port@", str(port)).replace("@stub@", str(self.v1[0])))
        program = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin") or "haproxy"
        process = self.processes.start([*prefix, program, "-db", "-f", str(config)], "haproxy.log")
        self.stops["haproxy"] = lambda: self.processes.stop(process)
        headers = {"Content-Type": "application/json", "Authorization": "Bearer ya29.bench"}
        url = f"http://127.0.0.1:{port}/v1/projects/{PROJECT}/messages:send"
        return Target("haproxy", Request(url, headers, HERE / "message-v1.json"), process.pid)
