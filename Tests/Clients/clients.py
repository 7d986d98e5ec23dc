"""How the clients are pointed at a gateway: the constants that hold Google's URLs, and the key; nothing else.

For firebase-admin that is the code of docs/admin-sdks.md.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator

import firebase_admin
import pyfcm
from gateway import ROOT, Gateway

_app_numbers = itertools.count()
# The code of the page, and how it is used there.
PAGE = (ROOT / "docs/admin-sdks.md").read_text()
CODE, USE = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
page: dict = {}
exec(CODE, page)


def legacy_client(gateway: Gateway, key: str | None = None) -> pyfcm.FCMNotification:
    """pyfcm with the tenant's key, or another one."""
    client = pyfcm.FCMNotification(api_key=key or gateway.key)
    client.FCM_END_POINT = f"{gateway.url}/fcm/send"
    return client


@contextlib.contextmanager
def firebase_app(gateway: Gateway, key: str | None = None, project: str = "demo") -> Iterator[firebase_admin.App]:
    """An app of firebase-admin with the tenant's key, or another one."""
    app = page["gateway_app"](gateway.url, key or gateway.key, project, name=f"app-{next(_app_numbers)}")
    try:
        yield app
    finally:
        firebase_admin.delete_app(app)
