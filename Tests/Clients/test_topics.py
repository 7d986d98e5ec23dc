"""Subscriptions to topics by firebase-admin, through either of FCM's APIs, with each upstream in turn."""

from __future__ import annotations

import asyncio
import itertools
import unittest
import warnings

from clients import firebase_app
from firebase_admin import exceptions, messaging
from gateway import Gateway


class Suite:
    """What holds whichever upstream keeps the subscriptions; subclasses name it."""

    upstream: str
    numbers = itertools.count()

    @classmethod
    def setUpClass(cls) -> None:
        cls.gateway = Gateway()
        cls.enterClassContext(cls.gateway)
        cls.gateway.switch(cls.upstream)
        cls.app = cls.enterClassContext(firebase_app(cls.gateway))

    def setUp(self) -> None:
        self.gateway.forget()

    def assert_reached(self, topic: str, *devices: str) -> None:
        """A message to the topic reaches these devices, each once, and no other."""
        number = str(next(self.numbers))
        messaging.send(messaging.Message(topic=topic, data={"number": number}), app=self.app)
        reached = [
            delivery["token"] for delivery in self.gateway.deliveries()
            if delivery["message"].get("data") == {"number": number}
        ]
        self.assertEqual(sorted(reached), sorted(devices))

    def check(self, subscribe, unsubscribe) -> None:
        topic = f"news-{self.id().rpartition('.')[2]}"
        self.assert_reached(topic)
        answer = subscribe(["a", "b", "c"], topic)
        self.assertEqual((answer.success_count, answer.failure_count, answer.errors), (3, 0, []))
        self.assert_reached(topic, "a", "b", "c")
        # The same again changes nothing; a prefixed name is the same topic.
        self.assertEqual(subscribe("b", f"/topics/{topic}").success_count, 1)
        answer = unsubscribe(["a", "c"], topic)
        self.assertEqual((answer.success_count, answer.failure_count), (2, 0))
        self.assert_reached(topic, "b")
        # Devices that were never there, or are no longer, do no harm.
        self.assertEqual(unsubscribe(["a", "nobody"], topic).success_count, 2)
        self.assert_reached(topic, "b")

    def test_current_methods(self) -> None:
        self.check(
            lambda tokens, topic: messaging.subscribe_to_topic(tokens, topic, app=self.app),
            lambda tokens, topic: messaging.unsubscribe_from_topic(tokens, topic, app=self.app),
        )

    def test_asynchronous_methods(self) -> None:
        with asyncio.Runner() as runner, firebase_app(self.gateway) as app:
            self.check(
                lambda tokens, topic: runner.run(messaging.subscribe_to_topic_async(tokens, topic, app=app)),
                lambda tokens, topic: runner.run(messaging.unsubscribe_from_topic_async(tokens, topic, app=app)),
            )

    def test_former_methods(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self.check(
                lambda tokens, topic: messaging.subscribe_to_topic_legacy(tokens, topic, app=self.app),
                lambda tokens, topic: messaging.unsubscribe_from_topic_legacy(tokens, topic, app=self.app),
            )

    def test_failures_have_their_places(self) -> None:
        tokens = ["a", "ERROR_UNREGISTERED", "c"]
        answer = messaging.subscribe_to_topic(tokens, "mixed", app=self.app)
        self.assertEqual((answer.success_count, answer.failure_count), (2, 1))
        self.assertEqual([error.index for error in answer.errors], [1])
        self.assert_reached("mixed", "a", "c")

    def test_a_thousand(self) -> None:
        tokens = [f"device-{number}" for number in range(1_000)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            answer = messaging.subscribe_to_topic_legacy(tokens, "thousand", app=self.app)
        self.assertEqual((answer.success_count, answer.failure_count), (1_000, 0))
        self.assert_reached("thousand", *tokens)

    def test_a_key_that_may_only_send(self) -> None:
        with firebase_app(self.gateway, key=self.gateway.make_key("messages:send")) as app:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                with self.assertRaises(exceptions.UnauthenticatedError):
                    messaging.subscribe_to_topic_legacy(["a"], "forbidden", app=app)
            self.assertEqual(messaging.subscribe_to_topic(["a"], "forbidden", app=app).success_count, 0)
        self.assert_reached("forbidden")


class LegacyUpstream(Suite, unittest.TestCase):
    upstream = "legacy"


class V1Upstream(Suite, unittest.TestCase):
    upstream = "v1"


if __name__ == "__main__":
    unittest.main()
