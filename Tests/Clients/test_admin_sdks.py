"""What docs/admin-sdks.md says of firebase-admin in Python; its code carries the other tests of firebase-admin."""

from __future__ import annotations

import importlib.metadata
import unittest
from unittest import mock

import firebase_admin
from clients import PAGE, USE, firebase_app, page
from firebase_admin import messaging
from gateway import Gateway


class Page(unittest.TestCase):
    def test_its_example_sends(self) -> None:
        with Gateway() as gateway:
            gateway.switch("v1")
            made = []

            def gateway_app(url: str, key: str, project: str) -> firebase_admin.App:
                made.append(page["gateway_app"](gateway.url, gateway.key, project))
                return made[-1]

            try:
                exec(USE, page | {"gateway_app": gateway_app})
            finally:
                for app in made:
                    firebase_admin.delete_app(app)
            (delivery,) = gateway.deliveries()
            self.assertEqual(delivery["message"]["data"], {"score": "3x1"})

    def test_its_version_is_the_one_that_is_tested(self) -> None:
        self.assertIn(f"`firebase-admin` {importlib.metadata.version('firebase-admin')} ", PAGE)

    def test_the_address_of_topics_follows_no_other(self) -> None:
        """The trap that the page warns of is there: else it should not be told."""
        with mock.patch.multiple(messaging._MessagingService, FCM_URL="http://gateway/{0}", IID_URL="http://gateway"):
            app = firebase_admin.initialize_app(page["GatewayKey"]("key"), {"projectId": "demo"}, "trap")
            try:
                service = messaging._get_messaging_service(app)
                self.assertEqual(service._fcm_url, "http://gateway/demo")
                self.assertEqual(service._fcm_topic_url, "https://fcm.googleapis.com/v1/projects/demo/registrations")
            finally:
                firebase_admin.delete_app(app)

    def test_an_address_that_is_new_ends_the_program(self) -> None:
        made = messaging._MessagingService.__init__

        def with_one_more(service: object, app: firebase_admin.App) -> None:
            made(service, app)
            service._new_url = "https://new.googleapis.com"

        with Gateway() as gateway, mock.patch.object(messaging._MessagingService, "__init__", with_one_more):
            try:
                with self.assertRaisesRegex(RuntimeError, "_new_url"), firebase_app(gateway):
                    pass
            finally:
                for app in list(firebase_admin._apps.values()):
                    firebase_admin.delete_app(app)


if __name__ == "__main__":
    unittest.main()
