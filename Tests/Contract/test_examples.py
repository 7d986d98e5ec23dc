"""Every example of the documents holds: requests are answered as documented, answers are what their schemas say."""

from __future__ import annotations

import datetime
import json
import unittest
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
import yaml
from contract import DOCUMENTS, ReadyGateway
from gateway import LIMIT_S

METHODS = ("get", "head", "put", "post", "patch", "delete")


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Operation:
    """An operation and the parameters that it shares with its neighbours."""

    method: str
    path: str
    content: dict[str, Any]
    parameters: list[dict[str, Any]]

    @property
    def label(self) -> str:
        return f"{self.method.upper()} {self.path}"

    def request_examples(self, document: Document) -> Iterator[tuple[str, str, Any]]:
        """The names, media types and values of what may be sent; an operation without a body has one of its own."""
        body = self.content.get("requestBody")
        if body is None:
            yield "", "", None
            return
        for media_type, content in body["content"].items():
            examples = list(document.examples(content))
            if not examples and not body.get("required"):
                yield "", "", None
            for name, value in examples:
                yield name, media_type, value

    def response(self, document: Document, status: int) -> dict[str, Any] | None:
        response = self.content["responses"].get(str(status))
        return document.resolved(response) if response else None


class Document:
    """One of the descriptions."""

    def __init__(self, listener: str) -> None:
        self.listener = listener
        self.root = yaml.load(DOCUMENTS[listener].read_text(), Loader=Loader)

    def resolved(self, node: dict[str, Any]) -> dict[str, Any]:
        """What stands at the end of a reference."""
        while "$ref" in node:
            target: Any = self.root
            for name in node["$ref"].removeprefix("#/").split("/"):
                target = target[name]
            node = target
        return node

    def operations(self) -> Iterator[Operation]:
        for path, item in self.root["paths"].items():
            for method in METHODS:
                if method in item:
                    operation = item[method]
                    parameters = [
                        self.resolved(each) for each in item.get("parameters", []) + operation.get("parameters", [])
                    ]
                    yield Operation(method, path, operation, parameters)

    def examples(self, content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """The examples of a body, by their names."""
        if "example" in content:
            yield "example", content["example"]
        for name, example in content.get("examples", {}).items():
            yield name, self.resolved(example)["value"]

    def faults(self, schema: dict[str, Any], value: Any) -> list[str]:
        """What keeps a value from being one of a schema."""
        validator = jsonschema_rs.Draft202012Validator(
            {**schema, "components": self.root["components"]}, validate_formats=True
        )
        return [f"{each.instance_path}: {each.message}" for each in validator.iter_errors(value)]


class Loader(yaml.SafeLoader):
    """Reads YAML as OpenAPI has it: what looks like a date stays a text."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


# What an example's request needs that the example can't say.

# A look-up, and a change of a group that is there, come after the group was made.
GROUP_MEMBERS = ("addDeviceGroupMembers", "removeDeviceGroupMembers", "getDeviceGroup", "deleteDeviceGroup")
# Nothing else is left of a tenant afterwards.
LAST = ("deleteTenant",)


class Examples(unittest.TestCase):
    """Sends what the documents show to a gateway that is ready for it."""

    def setUp(self) -> None:
        self.gateway = ReadyGateway()
        self.enterContext(self.gateway)

    def ask(self, listener: str, method: str, path: str, media_type: str, body: bytes | None) -> Answer:
        credential = self.gateway.admin_token if listener == "admin" else self.gateway.key
        headers = {"Authorization": f"Bearer {credential}"}
        if media_type:
            headers["Content-Type"] = media_type
        url = self.gateway.url_of(listener) + path
        request = urllib.request.Request(url, data=body, method=method.upper(), headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
                return Answer(response.status, dict(response.headers), response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read())

    def target(self, document: Document, operation: Operation) -> str:
        """The address of an operation: the parameters' examples, and what has none but is needed."""
        path, query = operation.path, {}
        for parameter in operation.parameters:
            name = parameter["name"]
            example = parameter.get("example", document.resolved(parameter["schema"]).get("default"))
            if parameter["in"] == "path":
                if operation.content["operationId"] in ("revokeKey", "rotateKey") and name == "key":
                    example = self.gateway.admin("POST", "tenants/demo/keys", {"scopes": ["audit:read"]})["id"]
                elif name == "batch":
                    example = self.batch(operation.content["operationId"])
                path = path.replace("{%s}" % name, urllib.parse.quote(str(example), safe=""))
            elif parameter["in"] == "query" and (parameter.get("required") or "example" in parameter):
                query[name] = example or "first-device"
        return path + ("?" + urllib.parse.urlencode(query) if query else "")

    def batch(self, operation: str) -> str:
        """The id of a batch in a state that allows an operation."""
        def ask(path: str, body: object) -> dict[str, Any]:
            answer = self.ask("data", "POST", f"/v1/tenants/demo/batches{path}", "application/json", json.dumps(body).encode())
            self.assertIn(answer.status, (200, 202), answer.body)
            return json.loads(answer.body)

        due = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
        body: dict[str, Any] = {"message": {"data": {"a": "1"}}, "send_at": due.strftime("%Y-%m-%dT%H:%M:%SZ")}
        if operation in ("putBatchPart", "startBatch"):
            batch = ask("", {**body, "open": True})["id"]
        else:
            batch = ask("", {**body, "to": {"tokens": ["first-device"]}})["id"]
        if operation == "startBatch":
            part = b'{"tokens": ["first-device", "second-device"]}'
            self.ask("data", "PUT", f"/v1/tenants/demo/batches/{batch}/parts/1", "application/json", part)
        elif operation in ("resumeBatch", "deleteBatch"):
            ask(f"/{batch}/{'pause' if operation == 'resumeBatch' else 'cancel'}", {})
        return batch

    def prepare(self, operation: str) -> None:
        """Brings about what an operation starts from."""
        key = {"Authorization": f"Bearer {self.gateway.key}", "Content-Type": "application/json"}
        if operation in (*GROUP_MEMBERS, "lookUpNotificationKey"):
            self.ask("data", "PUT", "/v1/tenants/demo/device-groups/appUser-7", key["Content-Type"],
                     b'{"tokens": ["first-device", "third-device"]}')
        elif operation in ("changeNotificationKey", "putDeviceGroup"):
            self.ask("data", "DELETE", "/v1/tenants/demo/device-groups/appUser-7", "", None)
        elif operation == "deleteRetiredToken":
            registration = {"tokens": ["first-device"], "registered": False}
            self.gateway.emulator("POST", "registrations", registration)
            self.ask("data", "POST", "/v1/tenants/demo/messages", key["Content-Type"],
                     b'{"token": "first-device", "data": {"score": "3"}}')
            self.gateway.emulator("POST", "registrations", {**registration, "registered": True})

    def check(self, listener: str) -> None:
        document = Document(listener)
        # Batches first: other operations change the tenant whose batches they are.
        operations = sorted(
            document.operations(), key=lambda each: (each.content["operationId"] in LAST, "/batches" not in each.path)
        )
        sent = 0
        for operation in operations:
            for name, media_type, value in operation.request_examples(document):
                if operation.content["operationId"] == "putV1Credential" and "service_account" not in value:
                    # It needs a configuration of its own: Tests/Upstream sends such credentials.
                    continue
                with self.subTest(operation.label, example=name):
                    self.prepare(operation.content["operationId"])
                    value = self.filled(operation.content["operationId"], value)
                    if media_type == "application/x-www-form-urlencoded":
                        body = urllib.parse.urlencode(value).encode()
                    else:
                        body = None if value is None else json.dumps(value).encode()
                    answer = self.ask(
                        listener, operation.method, self.target(document, operation), media_type, body
                    )
                    self.check_answer(document, operation, answer)
                    sent += 1
        print(f"{DOCUMENTS[listener].name}: {sent} requests sent", flush=True)
        self.assertGreater(sent, len(operations) - 1)

    def filled(self, operation: str, value: Any) -> Any:
        """An example with what can't be printed: a key pair, and the server that knows it."""
        if operation == "putV1Credential":
            return {**value, "service_account": {**value["service_account"], **self.gateway.service_account}}
        return value

    def check_answer(self, document: Document, operation: Operation, answer: Answer) -> None:
        self.assertIn(answer.status, (200, 201, 202, 204), answer.body)
        response = operation.response(document, answer.status)
        self.assertIsNotNone(response, f"{answer.status} is not documented")
        headers = {name.lower() for name in answer.headers}
        for name, header in response.get("headers", {}).items():
            if document.resolved(header).get("required"):
                self.assertIn(name.lower(), headers)
        media_type = answer.headers.get("Content-Type", "").partition(";")[0]
        contents = response.get("content", {})
        if operation.method == "head":
            self.assertEqual(answer.body, b"")
            return
        self.assertEqual(bool(answer.body), bool(contents))
        if not contents:
            return
        self.assertIn(media_type, contents)
        if media_type.endswith("json"):
            value = json.loads(answer.body)
        elif media_type.endswith("yaml"):
            value = yaml.load(answer.body, Loader=Loader)
        else:
            value = answer.body.decode()
        self.assertEqual(document.faults(contents[media_type]["schema"], value), [])

    def test_requests_to_the_data_listener(self) -> None:
        self.check("data")

    def test_requests_to_the_admin_listener(self) -> None:
        self.check("admin")

    def test_descriptions_are_served_as_they_are(self) -> None:
        for listener, file in DOCUMENTS.items():
            request = urllib.request.Request(f"{self.gateway.url_of(listener)}/openapi.yaml")
            with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
                self.assertEqual(response.headers["Content-Type"], "application/yaml")
                self.assertEqual(response.read(), file.read_bytes())


class Schemas(unittest.TestCase):
    """Compares what the documents show with what they say, without a gateway."""

    def test_examples_are_of_their_schemas(self) -> None:
        for listener in DOCUMENTS:
            document = Document(listener)
            checked = 0
            for place, content in contents(document.root):
                for name, value in document.examples(content):
                    with self.subTest(place, example=name):
                        self.assertEqual(document.faults(content["schema"], value), [])
                        checked += 1
            print(f"{DOCUMENTS[listener].name}: {checked} examples of bodies compared with their schemas", flush=True)
            self.assertGreater(checked, 10)

    def test_examples_of_parameters_and_headers_are_of_their_schemas(self) -> None:
        for listener in DOCUMENTS:
            document = Document(listener)
            for kind in ("parameters", "headers"):
                for name, node in document.root["components"][kind].items():
                    if "example" in node:
                        with self.subTest(name):
                            self.assertEqual(document.faults(node["schema"], node["example"]), [])

    def test_every_body_of_a_request_has_an_example(self) -> None:
        for listener in DOCUMENTS:
            document = Document(listener)
            for operation in document.operations():
                body = operation.content.get("requestBody", {})
                for media_type, content in body.get("content", {}).items() if body.get("required") else ():
                    with self.subTest(operation.label, media_type=media_type):
                        self.assertTrue(list(document.examples(content)))

    def test_every_schema_is_used(self) -> None:
        for listener in DOCUMENTS:
            text = DOCUMENTS[listener].read_text()
            document = Document(listener)
            for kind, nodes in document.root["components"].items():
                for name in nodes if kind != "securitySchemes" else ():
                    with self.subTest(f"{kind}/{name}"):
                        self.assertIn(f"'#/components/{kind}/{name}'", text)


def contents(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every body that a document describes, with its place."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "content" and isinstance(value, dict):
                for media_type, content in value.items():
                    yield f"{place} {media_type}", content
            else:
                yield from contents(value, f"{place}/{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from contents(value, f"{place}/{index}")


if __name__ == "__main__":
    unittest.main()
