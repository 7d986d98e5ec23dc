"""A client that openapi-python-client makes of a description has a type for everything, and sends with it."""

from __future__ import annotations

import importlib
import inspect
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from types import ModuleType

from contract import BUILD, DOCUMENTS, ReadyGateway

GENERATOR = Path(sys.executable).with_name("openapi-python-client")
FOLDER = BUILD / "contract/generated"
LIMIT_S = 300


def generated(listener: str) -> ModuleType:
    """The package that the generator makes of a description."""
    name = f"{listener}_client"
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    command = [GENERATOR, "generate", "--path", DOCUMENTS[listener], "--meta", "none", "--output-path", FOLDER / name]
    outcome = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S
    )
    if outcome.returncode != 0:
        raise RuntimeError(outcome.stdout)
    importlib.invalidate_caches()
    return importlib.import_module(name)


class GeneratedClients(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        sys.path.insert(0, str(FOLDER))
        cls.addClassCleanup(sys.path.remove, str(FOLDER))
        cls.packages = {listener: generated(listener) for listener in DOCUMENTS}

    def test_every_body_has_a_type(self) -> None:
        for listener, package in self.packages.items():
            models = importlib.import_module(f"{package.__name__}.models")
            for name in models.__all__:
                for member, kind in getattr(models, name).__dict__.get("__annotations__", {}).items():
                    if member != "additional_properties":
                        with self.subTest(listener, model=name, member=member):
                            self.assertNotIn("Any", str(kind))
            operations = Path(package.__file__).parent.glob("api/*/*.py")
            for operation in (path for path in operations if path.stem != "__init__"):
                module = importlib.import_module(f"{package.__name__}.api.{operation.parent.name}.{operation.stem}")
                body = inspect.signature(module.sync_detailed).parameters.get("body")
                if body is not None:
                    with self.subTest(listener, operation=operation.stem):
                        self.assertNotIn("Any", str(body.annotation))

    def test_sends(self) -> None:
        package = self.packages["data"]
        models = importlib.import_module(f"{package.__name__}.models")
        send = importlib.import_module(f"{package.__name__}.api.messages.send_message")
        subscribe = importlib.import_module(f"{package.__name__}.api.topics.subscribe")
        with ReadyGateway() as gateway, package.AuthenticatedClient(gateway.url, gateway.key) as client:
            note = models.Notification(title="Hello", badge=1)
            one = send.sync("demo", client=client, body=models.Message(token="phone", notification=note, ttl=60))
            self.assertIsInstance(one, models.Accepted)
            self.assertEqual(gateway.deliveries()[0]["message_id"], one.message_id.rpartition("/")[2])

            message = models.Message(tokens=["a", "ERROR_UNREGISTERED"], priority=models.MessagePriority.HIGH)
            several = send.sync("demo", client=client, body=message)
            self.assertIsInstance(several, models.Results)
            accepted, rejected = several.results
            self.assertIsInstance(accepted, models.AcceptedRecipient)
            self.assertIsInstance(rejected, models.RejectedRecipient)
            self.assertEqual((accepted.token, rejected.token), ("a", "ERROR_UNREGISTERED"))
            self.assertEqual(rejected.code, models.Code.UNREGISTERED)
            self.assertEqual(rejected.action, models.Action.DELETE_TOKEN)

            problem = send.sync("demo", client=client, body=models.Message(token="a", topic="news"))
            self.assertIsInstance(problem, models.Problem)
            self.assertEqual(problem.code, models.Code.INVALID_TARGET)

            body = models.Subscriptions(tokens=["a", "ERROR_UNREGISTERED"])
            accepted, rejected = subscribe.sync("demo", "news", client=client, body=body).results
            self.assertIsInstance(accepted, models.AcceptedSubscription)
            self.assertIsInstance(rejected, models.RejectedRecipient)


if __name__ == "__main__":
    unittest.main()
