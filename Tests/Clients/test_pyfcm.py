"""pyfcm, a client of the legacy protocol, against a gateway with each upstream in turn."""

from __future__ import annotations

import unittest

import pyfcm.errors
from clients import legacy_client
from gateway import Gateway


class Suite:
    """What holds whichever protocol carries the messages; subclasses name it."""

    upstream: str
    # Recipients that fail, and by what name pyfcm hears of it.
    failures: dict[str, str]
    unregistered: str
    lost_answer: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.gateway = Gateway()
        cls.enterClassContext(cls.gateway)
        cls.gateway.switch(cls.upstream)
        cls.client = legacy_client(cls.gateway)

    def setUp(self) -> None:
        self.gateway.forget()

    def assert_counts(self, result: dict, success: int, failure: int = 0, canonical: int = 0) -> None:
        self.assertEqual(
            (result["success"], result["failure"], result["canonical_ids"]), (success, failure, canonical), result
        )

    def assert_one_delivery(self, token: str) -> dict:
        """One device got one message, which is the value."""
        deliveries = self.gateway.deliveries()
        self.assertEqual([delivery["token"] for delivery in deliveries], [token])
        return deliveries[0]["message"]

    # Every method that sends.

    def test_notify_single_device(self) -> None:
        result = self.client.notify_single_device(
            registration_id="phone", message_title="Hello", message_body="Wörld", data_message={"order": "4711"}
        )
        self.assert_counts(result, success=1)
        self.assertEqual(len(result["multicast_ids"]), 1)
        message = self.assert_one_delivery("phone")
        self.assertEqual(message["notification"], {"title": "Hello", "body": "Wörld"})
        self.assertEqual(message["data"], {"order": "4711"})
        # The id is the one that FCM gave.
        self.assertEqual(result["results"], [{"message_id": self.gateway.deliveries()[0]["message_id"]}])

    def test_single_device_data_message(self) -> None:
        result = self.client.single_device_data_message(
            registration_id="phone", data_message={"text": "ü", "number": 3, "list": [1, "a"], "flag": True}
        )
        self.assert_counts(result, success=1)
        message = self.assert_one_delivery("phone")
        # Whatever is no text becomes one, as it did in the legacy protocol.
        self.assertEqual(message["data"], {"text": "ü", "number": "3", "list": '[1,"a"]', "flag": "true"})
        self.assertFalse(message.get("notification"))

    def test_notify_multiple_devices(self) -> None:
        # pyfcm splits what is more than a thousand.
        tokens = [f"phone-{number}" for number in range(2_500)]
        result = self.client.notify_multiple_devices(registration_ids=tokens, message_body="everybody")
        self.assert_counts(result, success=2_500)
        self.assertEqual(len(set(result["multicast_ids"])), 3)
        self.assertEqual(self.gateway.recipients(), sorted(tokens))
        # Results stand in the order of the tokens: each is the id of that device's message.
        ids = {delivery["token"]: delivery["message_id"] for delivery in self.gateway.deliveries()}
        self.assertEqual([entry["message_id"] for entry in result["results"]], [ids[token] for token in tokens])

    def test_multiple_devices_data_message(self) -> None:
        tokens = ["phone-a", self.unregistered, "phone-b"]
        result = self.client.multiple_devices_data_message(registration_ids=tokens, data_message={"k": "v"})
        self.assert_counts(result, success=2, failure=1)
        self.assertEqual([entry.get("error") for entry in result["results"]], [None, "NotRegistered", None])
        self.assertEqual(self.gateway.recipients(), ["phone-a", "phone-b"])

    def test_notify_topic_subscribers(self) -> None:
        self.gateway.subscribe("news", "reader-1", "reader-2")
        result = self.client.notify_topic_subscribers(topic_name="news", message_body="today")
        self.assert_counts(result, success=1)
        self.assertIsInstance(result["topic_message_id"], int)
        self.assertEqual(self.gateway.recipients(), ["reader-1", "reader-2"])

    def test_notify_topic_subscribers_by_condition(self) -> None:
        self.gateway.subscribe("a", "both", "only-a")
        self.gateway.subscribe("b", "both")
        result = self.client.notify_topic_subscribers(
            condition="'a' in topics && 'b' in topics", message_body="both of them"
        )
        self.assert_counts(result, success=1)
        self.assert_one_delivery("both")

    def test_topic_subscribers_data_message(self) -> None:
        self.gateway.subscribe("quiet", "reader")
        result = self.client.topic_subscribers_data_message(topic_name="quiet", data_message={"k": "v"})
        self.assert_counts(result, success=1)
        self.assertEqual(self.assert_one_delivery("reader")["data"], {"k": "v"})

    def test_send_async_request(self) -> None:
        # The same requests by another HTTP client, several at a time.
        parameters = [{"registration_ids": [f"phone-{number}"], "message_body": "x"} for number in range(50)]
        answers = self.client.send_async_request(parameters, timeout=60)
        self.assertEqual([answer["success"] for answer in answers], [1] * 50)
        self.assertEqual(self.gateway.recipients(), sorted(f"phone-{number}" for number in range(50)))

    # Options.

    def test_dry_run(self) -> None:
        result = self.client.notify_single_device(registration_id="phone", message_body="x", dry_run=True)
        self.assert_counts(result, success=1)
        result = self.client.notify_single_device(registration_id=self.unregistered, message_body="x", dry_run=True)
        self.assert_counts(result, success=0, failure=1)
        self.assertEqual(self.gateway.recipients(), [])
        self.assertEqual(len(self.gateway.requests()), 2)

    def test_options(self) -> None:
        result = self.client.notify_single_device(
            registration_id="phone",
            message_title="Hello",
            message_body="World",
            message_icon="icon",
            sound="default",
            badge=3,
            color="#ff0000",
            tag="tag",
            click_action="OPEN",
            android_channel_id="orders",
            collapse_key="order",
            time_to_live=60,
            low_priority=True,
            delay_while_idle=True,
            content_available=True,
            restricted_package_name="com.example",
            data_message={"order": "4711"},
            extra_kwargs={"mutable_content": True},
            extra_notification_kwargs={"image": "https://example.com/i.png", "subtitle": "Sub"},
        )
        self.assert_counts(result, success=1)
        message = self.assert_one_delivery("phone")
        options = (message["priority"], message["time_to_live"], message["collapse_key"])
        self.assertEqual(options, ("normal", 60, "order"))
        self.assertEqual(self.without_expiration(self.gateway.bodies()), [self.body_of_options])

    def test_localization(self) -> None:
        result = self.client.notify_single_device(
            registration_id="phone", title_loc_key="title", title_loc_args=["a"], body_loc_key="body",
            body_loc_args=["b", "c"],
        )
        self.assert_counts(result, success=1)
        self.assertEqual(self.gateway.bodies(), [self.body_of_localization])

    @staticmethod
    def without_expiration(bodies: list[dict]) -> list[dict]:
        """Bodies without the one value that depends on the time."""
        for body in bodies:
            body.get("message", {}).get("apns", {}).get("headers", {}).pop("apns-expiration", None)
        return bodies

    # Failures.

    def test_mixed_outcomes(self) -> None:
        tokens = ["phone-a", *self.failures, "phone-b"]
        result = self.client.notify_multiple_devices(registration_ids=tokens, message_body="x")
        self.assert_counts(result, success=2, failure=len(self.failures))
        expected = [None, *self.failures.values(), None]
        self.assertEqual([entry.get("error") for entry in result["results"]], expected)
        self.assertEqual(["message_id" in entry for entry in result["results"]], [name is None for name in expected])
        # pyfcm sends everything again when it sees a Retry-After; that must not happen once somebody was served.
        self.assertEqual(self.gateway.recipients(), ["phone-a", "phone-b"])

    def test_bad_messages(self) -> None:
        cases = {
            "InvalidDataKey": {"data_message": {"from": "me"}},
            "InvalidTtl": {"time_to_live": 2_419_201},
            "MessageTooBig": {"data_message": {"k": "v" * 4_096}},
        }
        for name, parameters in cases.items():
            with self.subTest(name):
                result = self.client.notify_single_device(registration_id="phone", **parameters)
                self.assert_counts(result, success=0, failure=1)
                self.assertEqual(result["results"], [{"error": name}])
        self.assertEqual(self.gateway.requests(), [])

    def test_bad_requests(self) -> None:
        cases = {
            "topic name": lambda: self.client.notify_topic_subscribers(topic_name="no topic!", message_body="x"),
            "condition": lambda: self.client.notify_topic_subscribers(condition="'a' in", message_body="x"),
            "priority": lambda: self.client.notify_single_device("phone", extra_kwargs={"priority": "urgent"}),
            "color": lambda: self.client.notify_single_device("phone", message_body="x", color="red"),
        }
        for name, send in cases.items():
            with self.subTest(name), self.assertRaisesRegex(pyfcm.errors.InvalidDataError, "InvalidParameters"):
                send()
        self.assertEqual(self.gateway.requests(), [])

    def test_wrong_keys(self) -> None:
        cases = {
            "unknown": "fgw_nobody",
            "a server key of FCM's": "AAAAabcdefg:APA91b" + "x" * 134,
            "without the scope": self.gateway.make_key("audit:read"),
        }
        for name, key in cases.items():
            with self.subTest(name), self.assertRaises(pyfcm.errors.AuthenticationError):
                legacy_client(self.gateway, key).notify_single_device(registration_id="phone", message_body="x")
        self.assertEqual(self.gateway.requests(), [])

    def test_lost_answer(self) -> None:
        self.gateway.emulator("POST", "faults", {"match": {"token": "lost"}, "action": {"type": "reset"}})
        result = self.client.notify_multiple_devices(registration_ids=["lost"], message_body="x")
        self.assertEqual(result["results"], [{"error": self.lost_answer}])
        # FCM may have taken the message: the gateway leaves it to the sender to risk a second one.
        self.assertEqual(len(self.gateway.requests()), 1)

    def test_waits_as_told(self) -> None:
        self.gateway.emulator(
            "POST", "faults", {"match": {"token": "busy"}, "times": 1, "action": self.quota_exceeded_for_a_second}
        )
        result = self.client.notify_single_device(registration_id="busy", message_body="x")
        self.assert_counts(result, success=1)
        self.assertEqual(len(self.gateway.requests()), 2)
        self.assert_one_delivery("busy")


class LegacyUpstream(Suite, unittest.TestCase):
    upstream = "legacy"
    unregistered = "ERROR_NotRegistered"
    lost_answer = "InternalServerError"
    failures = {
        f"ERROR_{name}": name
        for name in (
            "NotRegistered", "MismatchSenderId", "InvalidRegistration", "InvalidPackageName", "MessageTooBig",
            "InvalidDataKey", "InvalidTtl", "DeviceMessageRateExceeded", "Unavailable", "InternalServerError",
            "InvalidApnsCredential",
        )
    }
    body_of_options = {
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
            "android_channel_id": "orders",
        },
        "data": {"order": "4711"},
    }
    body_of_localization = {
        "to": "phone",
        "priority": "high",
        "notification": {
            "title_loc_key": "title", "title_loc_args": '["a"]', "body_loc_key": "body", "body_loc_args": '["b","c"]',
        },
    }
    quota_exceeded_for_a_second = {
        "type": "status",
        "status": 200,
        "headers": {"Retry-After": "1"},
        "body": '{"multicast_id":1,"success":0,"failure":1,"canonical_ids":0,'
        '"results":[{"error":"DeviceMessageRateExceeded"}]}',
    }

    def test_replaced_token(self) -> None:
        result = self.client.notify_single_device(registration_id="CANONICAL_newer", message_body="x")
        self.assert_counts(result, success=1, canonical=1)
        self.assertEqual(result["results"][0]["registration_id"], "newer")

    def test_requests(self) -> None:
        self.client.notify_multiple_devices(registration_ids=["a", "b"], message_body="x")
        self.assertEqual([request["path"] for request in self.gateway.requests()], ["/fcm/send"])


class V1Upstream(Suite, unittest.TestCase):
    upstream = "v1"
    unregistered = "ERROR_UNREGISTERED"
    lost_answer = "Unavailable"
    failures = {
        "ERROR_UNREGISTERED": "NotRegistered",
        "ERROR_SENDER_ID_MISMATCH": "MismatchSenderId",
        # FCM names the field that is wrong; from that follows which of the legacy errors it is.
        "ERROR_InvalidRegistration": "InvalidRegistration",
        "ERROR_InvalidPackageName": "InvalidPackageName",
        "ERROR_INVALID_ARGUMENT": "InvalidParameters",
        "ERROR_QUOTA_EXCEEDED": "DeviceMessageRateExceeded",
        "ERROR_UNAVAILABLE": "Unavailable",
        "ERROR_INTERNAL": "InternalServerError",
        "ERROR_THIRD_PARTY_AUTH_ERROR": "InvalidApnsCredential",
        # The project's own quota and permissions: no device is at fault.
        "ERROR_RATE_LIMIT_EXCEEDED": "Unavailable",
        "ERROR_SERVICE_DISABLED": "InternalServerError",
    }
    body_of_options = {
        "message": {
            "token": "phone",
            "data": {"order": "4711"},
            "notification": {"title": "Hello", "body": "World", "image": "https://example.com/i.png"},
            "android": {
                "collapse_key": "order",
                "priority": "NORMAL",
                "ttl": "60s",
                "restricted_package_name": "com.example",
                "notification": {
                    "icon": "icon", "sound": "default", "color": "#ff0000", "tag": "tag", "click_action": "OPEN",
                    "channel_id": "orders",
                },
            },
            "apns": {
                "headers": {"apns-collapse-id": "order", "apns-priority": "5"},
                "payload": {
                    "aps": {
                        "alert": {"title": "Hello", "subtitle": "Sub", "body": "World"},
                        "badge": 3, "sound": "default", "category": "OPEN", "content-available": 1,
                        "mutable-content": 1,
                    }
                },
            },
            "webpush": {"headers": {"TTL": "60", "Urgency": "normal"}},
        }
    }
    body_of_localization = {
        "message": {
            "token": "phone",
            "android": {
                "priority": "HIGH",
                "notification": {
                    "title_loc_key": "title", "title_loc_args": ["a"], "body_loc_key": "body",
                    "body_loc_args": ["b", "c"],
                },
            },
            "apns": {
                "headers": {"apns-priority": "10"},
                "payload": {
                    "aps": {
                        "alert": {
                            "loc-key": "body", "loc-args": ["b", "c"], "title-loc-key": "title",
                            "title-loc-args": ["a"],
                        }
                    }
                },
            },
            "webpush": {"headers": {"Urgency": "high"}},
        }
    }
    quota_exceeded_for_a_second = {
        "type": "status",
        "status": 429,
        "headers": {"Retry-After": "1"},
        "body": '{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded","details":[{"@type":'
        '"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"QUOTA_EXCEEDED"}]}}',
    }

    def test_requests(self) -> None:
        self.client.notify_multiple_devices(registration_ids=["a", "b"], message_body="x")
        paths = [request["path"] for request in self.gateway.requests()]
        self.assertEqual(paths, ["/v1/projects/demo/messages:send"] * 2)


if __name__ == "__main__":
    unittest.main()
