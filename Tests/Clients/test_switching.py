"""A tenant moves from one protocol to the other and back while its clients send."""

from __future__ import annotations

import threading
import unittest
from collections import Counter
from collections.abc import Callable

from clients import firebase_app, legacy_client
from firebase_admin import messaging
from gateway import LIMIT_S, UPSTREAMS, Gateway

SWITCHES = 6
SENDS_BETWEEN = 10
# What the phase is called while either protocol may carry a message.
SWITCHING = "either"


class Sender(threading.Thread):
    """Sends one message after the other, each to a device of its own, until it is stopped or fails."""

    def __init__(self, name: str, send: Callable[[str], None]) -> None:
        super().__init__(name=name, daemon=True)
        self._send = send
        self._change = threading.Condition()
        self._phase = SWITCHING
        self._served = Counter()
        self._is_stopped = False
        self.tokens: list[str] = []
        self.failure: Exception | None = None

    def run(self) -> None:
        while True:
            with self._change:
                if self._is_stopped:
                    return
                phase = self._phase
            token = f"{self.name}.{len(self.tokens)}.{phase}"
            self.tokens.append(token)
            failure = None
            try:
                self._send(token)
            except Exception as error:
                failure = error
            with self._change:
                self._served[phase] += 1
                self.failure = failure
                self._change.notify()
            if failure:
                return

    def enter(self, phase: str) -> None:
        """Has the messages from now on be those of a phase."""
        with self._change:
            self._phase = phase
            self._served.clear()

    def wait_for(self, count: int) -> None:
        """Waits until so many messages were sent in this phase, or one failed."""
        with self._change:
            served = self._change.wait_for(lambda: self._served[self._phase] >= count or self.failure, LIMIT_S)
        if not served:
            raise TimeoutError(f"{self.name} is stuck")

    def stop(self) -> None:
        with self._change:
            self._is_stopped = True
        self.join(LIMIT_S)


class Switching(unittest.TestCase):
    def test_no_send_fails(self) -> None:
        with Gateway() as gateway, firebase_app(gateway) as app:
            client = legacy_client(gateway)

            def send_by_pyfcm(token: str) -> None:
                result = client.notify_single_device(registration_id=token, message_body="x", data_message={"k": "v"})
                self.assertEqual((result["success"], result["failure"]), (1, 0), result)

            def send_by_firebase_admin(token: str) -> None:
                messaging.send(messaging.Message(token=token, data={"k": "v"}), app=app)

            senders = [Sender("pyfcm", send_by_pyfcm), Sender("firebase-admin", send_by_firebase_admin)]
            for sender in senders:
                sender.start()
            try:
                for number in range(SWITCHES):
                    upstream = UPSTREAMS[(number + 1) % 2]
                    gateway.switch(upstream)
                    self.observe(senders, upstream)
            finally:
                for sender in senders:
                    sender.stop()
            self.assertEqual([sender.failure for sender in senders], [None, None])

            tokens = sorted(token for sender in senders for token in sender.tokens)
            self.assertEqual(gateway.recipients(), tokens, "each message arrives once")
            used = Counter()
            for request in gateway.requests():
                (token,) = request["decision"]["delivered_to"]
                upstream = "legacy" if request["path"] == "/fcm/send" else "v1"
                # A switch holds from the first message that was sent after it.
                self.assertIn(token.rpartition(".")[2], (upstream, SWITCHING), token)
                used[upstream] += 1
            for upstream in UPSTREAMS:
                self.assertGreaterEqual(used[upstream], SWITCHES // 2 * SENDS_BETWEEN * len(senders))

    def observe(self, senders: list[Sender], upstream: str) -> None:
        """Watches some messages that begin and end while one protocol is set."""
        for sender in senders:
            sender.enter(upstream)
        for sender in senders:
            sender.wait_for(SENDS_BETWEEN)
        for sender in senders:
            sender.enter(SWITCHING)
        for sender in senders:
            sender.wait_for(1)


if __name__ == "__main__":
    unittest.main()
