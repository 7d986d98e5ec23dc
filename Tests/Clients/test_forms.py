"""The legacy protocol's plain text form, sent by Python's own HTTP client, with each upstream in turn."""

from __future__ import annotations

import unittest
import urllib.error
import urllib.parse
import urllib.request

from gateway import LIMIT_S, Gateway


class Suite:
    """What holds whichever protocol carries the messages; subclasses name it."""

    upstream: str
    # Recipients that fail, and the status and error that the sender gets to see.
    failures: dict[str, tuple[int, str]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.gateway = Gateway()
        cls.enterClassContext(cls.gateway)
        cls.gateway.switch(cls.upstream)

    def setUp(self) -> None:
        self.gateway.forget()

    def send(self, fields: dict[str, str], key: str | None = None) -> tuple[int, str]:
        """Sends a form; the value is the answer's status and text."""
        request = urllib.request.Request(
            f"{self.gateway.url}/fcm/send",
            data=urllib.parse.urlencode(fields).encode(),
            headers={"Authorization": f"key={key or self.gateway.key}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
                self.assertEqual(response.headers.get_content_type(), "text/plain")
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def test_send(self) -> None:
        answer = self.send(
            {"registration_id": "phone", "data.greeting": "grüß Gott & more", "time_to_live": "60", "collapse_key": "k"}
        )
        (delivery,) = self.gateway.deliveries()
        self.assertEqual(answer, (200, f"id={delivery['message_id']}"))
        self.assertEqual(delivery["token"], "phone")
        self.assertEqual(delivery["message"]["data"], {"greeting": "grüß Gott & more"})
        self.assertEqual((delivery["message"]["time_to_live"], delivery["message"]["collapse_key"]), (60, "k"))

    def test_dry_run(self) -> None:
        status, text = self.send({"registration_id": "phone", "data.k": "v", "dry_run": "true"})
        self.assertEqual((status, text[:3]), (200, "id="))
        self.assertEqual(self.gateway.recipients(), [])
        self.assertEqual(len(self.gateway.requests()), 1)

    def test_failures(self) -> None:
        for token, answer in self.failures.items():
            with self.subTest(token):
                status, name = answer
                self.assertEqual(self.send({"registration_id": token, "data.k": "v"}), (status, f"Error={name}"))
        self.assertEqual(self.gateway.recipients(), [])

    def test_bad_forms(self) -> None:
        cases = {
            "MissingRegistration": {"data.k": "v"},
            "InvalidDataKey": {"registration_id": "phone", "data.from": "me"},
            "InvalidTtl": {"registration_id": "phone", "time_to_live": "soon"},
            "MessageTooBig": {"registration_id": "phone", "data.k": "v" * 4_096},
        }
        for name, fields in cases.items():
            with self.subTest(name):
                self.assertEqual(self.send(fields), (200, f"Error={name}"))
        self.assertEqual(self.gateway.requests(), [])

    def test_wrong_key(self) -> None:
        status, _ = self.send({"registration_id": "phone"}, key="fgw_nobody")
        self.assertEqual(status, 401)
        self.assertEqual(self.gateway.requests(), [])


class LegacyUpstream(Suite, unittest.TestCase):
    upstream = "legacy"
    failures = {
        "ERROR_NotRegistered": (200, "NotRegistered"),
        "ERROR_MismatchSenderId": (200, "MismatchSenderId"),
        "ERROR_InvalidRegistration": (200, "InvalidRegistration"),
        "ERROR_Unavailable": (503, "Unavailable"),
        "ERROR_InternalServerError": (500, "InternalServerError"),
    }


class V1Upstream(Suite, unittest.TestCase):
    upstream = "v1"
    failures = {
        "ERROR_UNREGISTERED": (200, "NotRegistered"),
        "ERROR_SENDER_ID_MISMATCH": (200, "MismatchSenderId"),
        "ERROR_InvalidRegistration": (200, "InvalidRegistration"),
        "ERROR_UNAVAILABLE": (503, "Unavailable"),
        "ERROR_INTERNAL": (500, "InternalServerError"),
    }


if __name__ == "__main__":
    unittest.main()
