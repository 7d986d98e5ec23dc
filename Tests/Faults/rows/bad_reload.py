"""SIGHUP with files that are cut off, invalid or gone, while clients send over TLS."""

from __future__ import annotations

import ssl

from lab import Certificate, Gateway, Lab, LabError, call

FAULT = "A reload of a bad configuration or certificate"
INJECTED = (
    "SIGHUP with the certificate cut off, empty, missing, or with another certificate's key; with the configuration "
    "cut off, with an unknown key, with a bad value, or missing."
)
EXPECTED = (
    "The old configuration and certificate stay in force, and open connections stay open. The gauge is 0, and the log "
    "names file and key. After the repair the gauge is 1."
)

GAUGE = "fcmgw_config_last_reload_successful"


def run(lab: Lab) -> str:
    fcm = lab.emulator()
    first, second = lab.certificate("first"), lab.certificate("second")
    certificate, key = lab.folder / "server.crt", lab.folder / "server.key"

    def install(one: Certificate) -> None:
        certificate.write_bytes(one.certificate.read_bytes())
        key.write_bytes(one.key.read_bytes())

    install(first)
    gateway = lab.gateway(
        {"http": {"tls": {"certificateFile": str(certificate), "privateKeyFile": str(key)}}}, scheme="https"
    )
    tenant = gateway.tenant("shop", fcm)
    # Its connections are opened once, so it sees every reload from within.
    load = tenant.load(concurrency=4, rate=50).start()
    assert gateway.metric(GAUGE) == 1
    reloads = Reloads(lab, gateway)
    good_config = gateway.config_file.read_text()
    pem = first.certificate.read_bytes()

    faults = [
        ("certificate cut off", lambda: certificate.write_bytes(second.certificate.read_bytes()[:200]),
         "http.tls.certificateFile"),
        ("certificate empty", lambda: certificate.write_bytes(b""), "http.tls.certificateFile"),
        ("certificate missing", certificate.unlink, "http.tls.certificateFile"),
        ("another's key", lambda: key.write_bytes(second.key.read_bytes()), "http.tls.privateKeyFile"),
        ("key cut off", lambda: key.write_bytes(first.key.read_bytes()[:100]), "http.tls.privateKeyFile"),
        ("configuration cut off", lambda: gateway.config_file.write_text(good_config[: len(good_config) // 2]), None),
        ("unknown key", lambda: gateway.config_file.write_text(good_config.replace('"log"', '"lgo"')), "lgo"),
        ("bad value", lambda: gateway.config_file.write_text(good_config.replace('"info"', '"loud"')), "log.level"),
        ("configuration missing", gateway.config_file.unlink, None),
    ]
    for name, spoil, path in faults:
        spoil()
        line = reloads.send(expected=0)
        assert path is None or line.get("key") == path, f"{name}: {line}"
        assert line.get("file") == str(gateway.config_file), f"{name}: {line}"
        assert served(gateway) == pem, f"{name}: another certificate is served"
        install(first)
        gateway.config_file.write_text(good_config)
        reloads.send(expected=1)
    install(second)
    reloads.send(expected=1)
    assert served(gateway) == second.certificate.read_bytes(), "the new certificate is not served"
    for _ in range(10):
        gateway.reload()
    reloads.send(expected=1)
    load.stop()
    assert set(load.statuses) == {200}, f"sends over connections that were open all the time: {load.statuses}"
    assert gateway.stop() == 0 and gateway.verify() == 0
    return (
        f"{len(faults)} bad reloads: old certificate and settings kept, gauge 0, then 1; renewed certificate served; "
        f"{len(load.answers)} sends over 4 connections meanwhile, all 200, slowest {load.percentile(1):.2f} s"
    )


class Reloads:
    """Sends SIGHUP and waits for what the log says of it."""

    def __init__(self, lab: Lab, gateway: Gateway) -> None:
        self.lab, self.gateway = lab, gateway

    def send(self, expected: int) -> dict:
        before = len(self.lines())
        self.gateway.reload()
        self.lab.wait_until("the reload", lambda: len(self.lines()) > before)
        line = self.lines()[before]
        assert ("not reloaded" in line["message"]) == (expected == 0), line
        self.lab.wait_until("the gauge", lambda: self.gateway.metric(GAUGE) == expected)
        return line

    def lines(self) -> list[dict]:
        return [
            line for line in self.gateway.log_lines()
            if line["message"].startswith(("The configuration was reloaded", "The configuration was not reloaded"))
        ]


def served(gateway: Gateway) -> bytes:
    """The certificate that a new connection gets, in PEM."""
    try:
        return ssl.get_server_certificate(("127.0.0.1", gateway.port), timeout=10).encode()
    except OSError as error:
        raise LabError(f"no certificate: {error}; {call('GET', gateway.url)}") from error
