"""How the clients are pointed at a gateway: the constants that hold Google's URLs, and the key; nothing else."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

import firebase_admin
import google.auth.credentials
import pyfcm
from firebase_admin import credentials, messaging
from gateway import Gateway

_app_numbers = itertools.count()


def legacy_client(gateway: Gateway, key: str | None = None) -> pyfcm.FCMNotification:
    """pyfcm with the tenant's key, or another one."""
    client = pyfcm.FCMNotification(api_key=key or gateway.key)
    client.FCM_END_POINT = f"{gateway.url}/fcm/send"
    return client


@contextlib.contextmanager
def firebase_app(gateway: Gateway, key: str | None = None, project: str = "demo") -> Iterator[firebase_admin.App]:
    """An app of firebase-admin with the tenant's key, or another one."""
    messaging._MessagingService.FCM_URL = gateway.url + "/v1/projects/{0}/messages:send"
    messaging._MessagingService.IID_URL = gateway.url
    app = firebase_admin.initialize_app(
        KeyCredential(key or gateway.key), {"projectId": project}, name=f"app-{next(_app_numbers)}"
    )
    # This one is written out where the others are constants.
    messaging._get_messaging_service(app)._fcm_topic_url = f"{gateway.url}/v1/projects/{project}/registrations"
    try:
        yield app
    finally:
        firebase_admin.delete_app(app)


class KeyCredential(credentials.Base):
    """A gateway's API key where firebase-admin expects an account that gets access tokens."""

    def __init__(self, key: str) -> None:
        self._key = key

    def get_credential(self) -> google.auth.credentials.Credentials:
        return _UnchangingToken(self._key)


class _UnchangingToken(google.auth.credentials.Credentials):
    def __init__(self, token: str) -> None:
        super().__init__()
        self.token = token

    def refresh(self, request: object) -> None:
        """There is nothing newer; the client asks when it is told that the token is not good."""
