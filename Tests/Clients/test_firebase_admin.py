"""firebase-admin, a client of HTTP v1, against a gateway with each upstream in turn."""

from __future__ import annotations

import asyncio
import datetime
import unittest

from clients import firebase_app
from firebase_admin import exceptions, messaging
from gateway import Gateway


class Suite:
    """What holds whichever protocol carries the messages; subclasses name it."""

    upstream: str
    # Recipients that fail, and what firebase-admin raises.
    failures: dict[str, type[Exception]]
    # Those of them that a gateway takes for trouble of FCM's: after a few it asks nobody for a while.
    troubles: frozenset[str] = frozenset()
    unregistered: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.gateway = Gateway()
        cls.enterClassContext(cls.gateway)
        cls.gateway.switch(cls.upstream)
        cls.app = cls.enterClassContext(firebase_app(cls.gateway))

    def setUp(self) -> None:
        self.gateway.forget()

    def send(self, message: messaging.Message, **options: bool) -> str:
        name = messaging.send(message, app=self.app, **options)
        self.assertRegex(name, r"^projects/demo/messages/.+")
        return name

    # Every method that sends.

    def test_send(self) -> None:
        name = self.send(
            messaging.Message(
                token="phone", notification=messaging.Notification("Hello", "Wörld"), data={"order": "4711"}
            )
        )
        (delivery,) = self.gateway.deliveries()
        self.assertEqual(delivery["token"], "phone")
        self.assertEqual(delivery["message"]["notification"], {"title": "Hello", "body": "Wörld"})
        self.assertEqual(delivery["message"]["data"], {"order": "4711"})
        self.assertEqual(name, f"projects/demo/messages/{delivery['message_id']}")

    def test_send_to_topic_and_condition(self) -> None:
        self.gateway.subscribe("news", "reader-1")
        self.send(messaging.Message(topic="news", data={"k": "v"}))
        self.send(messaging.Message(condition="'news' in topics || 'none' in topics", data={"k": "v"}))
        self.assertEqual(self.gateway.recipients(), ["reader-1", "reader-1"])

    def test_send_each(self) -> None:
        messages = [messaging.Message(token=token, data={"k": "v"}) for token in ("a", self.unregistered, "c")]
        batch = messaging.send_each(messages, app=self.app)
        self.assert_mixed(batch)

    def test_send_each_async(self) -> None:
        # The same by another HTTP client.
        messages = [messaging.Message(token=token, data={"k": "v"}) for token in ("a", self.unregistered, "c")]
        # Its connections belong to the event loop, which therefore lives longer than the app.
        with asyncio.Runner() as runner, firebase_app(self.gateway) as app:
            batch = runner.run(messaging.send_each_async(messages, app=app))
        self.assert_mixed(batch)

    def assert_mixed(self, batch: messaging.BatchResponse) -> None:
        self.assertEqual((batch.success_count, batch.failure_count), (2, 1))
        self.assertEqual([each.success for each in batch.responses], [True, False, True])
        self.assertIsInstance(batch.responses[1].exception, messaging.UnregisteredError)
        self.assertEqual(self.gateway.recipients(), ["a", "c"])

    def test_send_each_for_multicast(self) -> None:
        # The most that the client takes; it opens as many connections.
        tokens = [f"phone-{number}" for number in range(500)]
        message = messaging.MulticastMessage(tokens=tokens, notification=messaging.Notification("a", "b"))
        batch = messaging.send_each_for_multicast(message, app=self.app)
        self.assertEqual((batch.success_count, batch.failure_count), (500, 0))
        ids = {delivery["token"]: delivery["message_id"] for delivery in self.gateway.deliveries()}
        self.assertEqual(
            [each.message_id for each in batch.responses], [f"projects/demo/messages/{ids[token]}" for token in tokens]
        )
        self.assertEqual(len(self.gateway.deliveries()), 500)

    def test_send_each_for_multicast_async(self) -> None:
        tokens = [f"phone-{number}" for number in range(100)]
        message = messaging.MulticastMessage(tokens=tokens, data={"k": "v"})
        with asyncio.Runner() as runner, firebase_app(self.gateway) as app:
            batch = runner.run(messaging.send_each_for_multicast_async(message, app=app))
        self.assertEqual((batch.success_count, batch.failure_count), (100, 0))
        self.assertEqual(self.gateway.recipients(), sorted(tokens))

    # Options.

    def test_dry_run(self) -> None:
        self.send(messaging.Message(token="phone", data={"k": "v"}), dry_run=True)
        with self.assertRaises(messaging.UnregisteredError):
            self.send(messaging.Message(token=self.unregistered), dry_run=True)
        batch = messaging.send_each([messaging.Message(token="phone")] * 3, dry_run=True, app=self.app)
        self.assertEqual((batch.success_count, batch.failure_count), (3, 0))
        self.assertEqual(self.gateway.recipients(), [])
        self.assertEqual(len(self.gateway.requests()), 5)

    def test_platforms(self) -> None:
        message = messaging.Message(
            token="phone",
            notification=messaging.Notification("Hello", "World", "https://example.com/i.png"),
            data={"order": "4711"},
            android=messaging.AndroidConfig(
                collapse_key="order",
                priority="normal",
                ttl=datetime.timedelta(minutes=1),
                restricted_package_name="com.example",
                notification=messaging.AndroidNotification(
                    icon="icon", color="#ff0000", sound="default", tag="tag", click_action="OPEN", channel_id="orders",
                    body_loc_key="body", body_loc_args=["b", "c"],
                ),
            ),
            apns=messaging.APNSConfig(
                headers={"apns-priority": "5", "apns-collapse-id": "order"},
                payload=messaging.APNSPayload(
                    messaging.Aps(
                        alert=messaging.ApsAlert("Hello", "Sub", "World", loc_key="body", loc_args=["b", "c"]),
                        badge=3, sound="default", category="OPEN", content_available=True, mutable_content=True,
                    )
                ),
            ),
            webpush=messaging.WebpushConfig(headers={"TTL": "60", "Urgency": "normal"}),
        )
        self.send(message)
        self.assertEqual(self.gateway.bodies(), [self.body_of_platforms])

    # Failures.

    def test_failures(self) -> None:
        for token, action in self.faults.items():
            self.gateway.emulator("POST", "faults", {"match": {"token": token}, "times": 100, "action": action})
        # At once, because the client itself repeats some of them for seconds.
        tokens = [token for token in self.failures if token not in self.troubles]
        batch = messaging.send_each([messaging.Message(token=token) for token in tokens], app=self.app)
        self.assertEqual(
            [type(each.exception) for each in batch.responses], [self.failures[token] for token in tokens]
        )
        self.assertEqual(self.gateway.recipients(), [])

    def test_troubles(self) -> None:
        for token in self.troubles:
            with self.subTest(token), Gateway() as gateway:
                gateway.switch(self.upstream)
                with firebase_app(gateway) as app, self.assertRaises(self.failures[token]):
                    messaging.send(messaging.Message(token=token), app=app)
                # The client repeats it four times, and its repeats are the gateway's own calls.
                self.assertEqual(len(gateway.requests()), 5)

    def test_repeats_what_is_worth_repeating(self) -> None:
        fault = {"match": {"token": "busy"}, "times": 1, "action": self.unavailable_for_a_second}
        self.gateway.emulator("POST", "faults", fault)
        self.send(messaging.Message(token="busy"))
        self.assertEqual(len(self.gateway.requests()), 2)
        self.assertEqual(self.gateway.recipients(), ["busy"])

    def test_bad_messages(self) -> None:
        cases = {
            "Invalid data payload key: from": messaging.Message(token="phone", data={"from": "me"}),
            "too big": messaging.Message(token="phone", data={"k": "v" * 4_096}),
            "[Cc]ondition": messaging.Message(condition="'a' in"),
        }
        for text, message in cases.items():
            with self.subTest(text), self.assertRaisesRegex(exceptions.InvalidArgumentError, text):
                self.send(message)
        self.assertEqual(self.gateway.requests(), [])

    def test_wrong_credentials(self) -> None:
        cases = {
            "unknown": ({"key": "fgw_nobody"}, exceptions.UnauthenticatedError),
            "without the scope": ({"key": self.gateway.make_key("audit:read")}, exceptions.PermissionDeniedError),
            "another project": ({"project": "elsewhere"}, exceptions.PermissionDeniedError),
        }
        for name, (options, error) in cases.items():
            with self.subTest(name), firebase_app(self.gateway, **options) as app, self.assertRaises(error):
                messaging.send(messaging.Message(token="phone"), app=app)
        self.assertEqual(self.gateway.requests(), [])


class LegacyUpstream(Suite, unittest.TestCase):
    upstream = "legacy"
    unregistered = "ERROR_NotRegistered"
    failures = {
        "ERROR_NotRegistered": messaging.UnregisteredError,
        "ERROR_MismatchSenderId": messaging.SenderIdMismatchError,
        "ERROR_InvalidRegistration": exceptions.InvalidArgumentError,
        "ERROR_InvalidPackageName": exceptions.InvalidArgumentError,
        "ERROR_InvalidApnsCredential": messaging.ThirdPartyAuthError,
        "ERROR_InternalServerError": exceptions.InternalError,
        "over-quota": messaging.QuotaExceededError,
        "down": exceptions.UnavailableError,
    }
    # Without a time to wait the gateway names one itself, a minute for a device; firebase-admin would wait that long.
    faults = {
        token: {
            "type": "status",
            "status": 200,
            "headers": {"Retry-After": "1"},
            "body": '{"multicast_id":1,"success":0,"failure":1,"canonical_ids":0,"results":[{"error":"%s"}]}' % error,
        }
        for token, error in {"over-quota": "DeviceMessageRateExceeded", "down": "Unavailable"}.items()
    }
    unavailable_for_a_second = faults["down"]
    body_of_platforms = {
        "to": "phone",
        "collapse_key": "order",
        "priority": "normal",
        "content_available": True,
        "mutable_content": True,
        "time_to_live": 60,
        "restricted_package_name": "com.example",
        "notification": {
            "title": "Hello", "body": "World", "subtitle": "Sub", "image": "https://example.com/i.png", "icon": "icon",
            "sound": "default", "badge": "3", "color": "#ff0000", "tag": "tag", "click_action": "OPEN",
            "android_channel_id": "orders", "body_loc_key": "body", "body_loc_args": '["b","c"]',
        },
        "data": {"order": "4711"},
    }

    def test_what_legacy_has_no_place_for(self) -> None:
        cases = {
            "message.fid": messaging.Message(fid="cIeVtbvTTAKK0qZxGTpT0a"),
            "message.fcm_options": messaging.Message(token="p", fcm_options=messaging.FCMOptions("label")),
            "message.apns.payload.custom": messaging.Message(
                token="p", apns=messaging.APNSConfig(payload=messaging.APNSPayload(messaging.Aps(badge=1), custom="x"))
            ),
            "message.android.notification.sticky": messaging.Message(
                token="p",
                android=messaging.AndroidConfig(notification=messaging.AndroidNotification(title="t", sticky=True)),
            ),
            "message.webpush.data": messaging.Message(token="p", webpush=messaging.WebpushConfig(data={"k": "v"})),
        }
        for field, message in cases.items():
            with self.subTest(field), self.assertRaisesRegex(exceptions.InvalidArgumentError, field):
                self.send(message)
        # Refused, not sent without it.
        self.assertEqual(self.gateway.requests(), [])


class V1Upstream(Suite, unittest.TestCase):
    upstream = "v1"
    unregistered = "ERROR_UNREGISTERED"
    failures = {
        "ERROR_UNREGISTERED": messaging.UnregisteredError,
        "ERROR_SENDER_ID_MISMATCH": messaging.SenderIdMismatchError,
        "ERROR_INVALID_ARGUMENT": exceptions.InvalidArgumentError,
        "ERROR_QUOTA_EXCEEDED": messaging.QuotaExceededError,
        "ERROR_THIRD_PARTY_AUTH_ERROR": messaging.ThirdPartyAuthError,
        "ERROR_INTERNAL": exceptions.InternalError,
        "ERROR_UNAVAILABLE": exceptions.UnavailableError,
    }
    troubles = frozenset(["ERROR_INTERNAL", "ERROR_UNAVAILABLE"])
    faults = {}
    unavailable_for_a_second = {
        "type": "status",
        "status": 503,
        "headers": {"Retry-After": "1"},
        "body": '{"error":{"code":503,"status":"UNAVAILABLE","message":"Try later","details":[{"@type":'
        '"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"UNAVAILABLE"}]}}',
    }
    body_of_platforms = {
        "message": {
            "token": "phone",
            "data": {"order": "4711"},
            "notification": {"title": "Hello", "body": "World", "image": "https://example.com/i.png"},
            "android": {
                "collapse_key": "order",
                "priority": "normal",
                "ttl": "60s",
                "restricted_package_name": "com.example",
                "notification": {
                    "icon": "icon", "sound": "default", "color": "#ff0000", "tag": "tag", "click_action": "OPEN",
                    "channel_id": "orders", "body_loc_key": "body", "body_loc_args": ["b", "c"],
                },
            },
            "apns": {
                "headers": {"apns-collapse-id": "order", "apns-priority": "5"},
                "payload": {
                    "aps": {
                        "alert": {
                            "title": "Hello", "subtitle": "Sub", "body": "World", "loc-key": "body",
                            "loc-args": ["b", "c"],
                        },
                        "badge": 3, "sound": "default", "category": "OPEN", "content-available": 1,
                        "mutable-content": 1,
                    }
                },
            },
            "webpush": {"headers": {"TTL": "60", "Urgency": "normal"}},
        }
    }

    def test_what_only_v1_has(self) -> None:
        message = messaging.Message(
            token="phone",
            fcm_options=messaging.FCMOptions("label"),
            apns=messaging.APNSConfig(payload=messaging.APNSPayload(messaging.Aps(badge=1), custom={"a": [1]})),
        )
        self.send(message)
        expected = {
            "token": "phone",
            "fcm_options": {"analytics_label": "label"},
            "apns": {"payload": {"aps": {"badge": 1}, "custom": {"a": [1]}}},
        }
        self.send(messaging.Message(fid="cIeVtbvTTAKK0qZxGTpT0a", data={"k": "v"}))
        by_installation = {"fid": "cIeVtbvTTAKK0qZxGTpT0a", "data": {"k": "v"}}
        self.assertEqual(self.gateway.bodies(), [{"message": expected}, {"message": by_installation}])


if __name__ == "__main__":
    unittest.main()
