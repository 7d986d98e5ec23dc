"""A proxy before PostgreSQL that loses what it is told to lose, at the very message.

It speaks only as much of the protocol as it takes to follow transactions
(https://www.postgresql.org/docs/current/protocol-message-formats.html): it knows each prepared statement's text, and so
which statements a transaction has run when its COMMIT passes. Connections are without TLS.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Faults"))

from lab import LIMIT_S, LabError  # noqa: E402

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
# No message of a gateway's comes near it.
MAX_MESSAGE = 64 * 1024 * 1024


@dataclass
class CommitFault:
    """What becomes of some transactions' COMMIT.

    - point: `request`, so that the server never commits, or `answer`, so that it has.
    - action: `drop` closes the connection, `silence` passes on nothing more and keeps it open, `hold` waits for
      `release()`.
    - statements: a pattern of a statement that the transaction ran; each transaction where it is left out.
    - times: how many of them.
    """

    point: str
    action: str
    statements: str = ""
    times: int = 1
    hit: int = 0
    """How many met it."""
    _released: threading.Event = field(default_factory=threading.Event)

    def meets(self, point: str, ran: list[str]) -> bool:
        if point != self.point or self.hit >= self.times:
            return False
        return not self.statements or any(re.search(self.statements, one, re.IGNORECASE) for one in ran)

    def release(self) -> None:
        self._released.set()


class PostgreSQLProxy:
    """Listens on a port of its own before a server.

        proxy = PostgreSQLProxy(postgresql.port)
        fault = proxy.lose(CommitFault("answer", "drop", "INSERT INTO idempotency_records"))
        proxy.cut(); proxy.mend()                   # nothing passes and nothing is closed, new connections neither
        proxy.close_all(); proxy.target = other     # all connections end, new ones go elsewhere

    Everything happens on a thread with a loop of its own. Faults are looked at message by message.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.target = (host, port)
        self.connections = 0
        """How many were accepted."""
        self.drops_notifications = False
        """Whether what `NOTIFY` says gets lost."""
        self._faults: list[CommitFault] = []
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._passes = asyncio.Event()
        self._passes.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port: int = self._call(self._listen())

    # What is done to it, from any thread

    def lose(self, fault: CommitFault) -> CommitFault:
        self._faults.append(fault)
        return fault

    def heal(self) -> None:
        for fault in self._faults:
            fault.release()
        self._faults.clear()

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self._passes.clear)

    def mend(self) -> None:
        self._loop.call_soon_threadsafe(self._passes.set)

    def close_all(self) -> None:
        """Resets all connections."""
        self._call(self._reset_all())

    def close(self) -> None:
        self.heal()
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT_S)
        if self._thread.is_alive():
            raise LabError("the proxy does not end")
        self._loop.close()

    def _call(self, work):  # noqa: ANN001, ANN202
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT_S)

    # On the loop

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=MAX_MESSAGE)
        return self._server.sockets[0].getsockname()[1]

    async def _reset_all(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def _end(self) -> None:
        self._server.close()
        await self._reset_all()
        self._passes.set()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        self._open.add(writer)
        upstream = None
        try:
            await self._passes.wait()
            first = await self._startup(reader, writer)
            server, upstream = await asyncio.open_connection(*self.target, limit=MAX_MESSAGE)
            self._open.add(upstream)
            upstream.write(first)
            link = _Link(self, reader, writer, server, upstream)
            await link.run()
        except (OSError, EOFError, asyncio.CancelledError, RuntimeError):
            pass
        finally:
            for each in (writer, upstream):
                if each is not None:
                    each.transport.abort()
                    self._open.discard(each)
            self._tasks.discard(task)

    async def _startup(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """The first message that the server is to see; TLS is refused here."""
        while True:
            length = await reader.readexactly(4)
            body = await reader.readexactly(int.from_bytes(length) - 4)
            if int.from_bytes(body[:4]) not in (SSL_REQUEST, GSS_REQUEST):
                return length + body
            writer.write(b"N")

    def fault(self, point: str, ran: list[str]) -> CommitFault | None:
        for fault in self._faults:
            if fault.meets(point, ran):
                fault.hit += 1
                return fault
        return None

    async def passing(self) -> None:
        if not self._passes.is_set():
            await self._passes.wait()


class _Link:
    """One connection and the server's end of it."""

    def __init__(self, proxy: PostgreSQLProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
                 server: asyncio.StreamReader, upstream: asyncio.StreamWriter) -> None:
        self.proxy = proxy
        self.client, self.server = (reader, writer), (server, upstream)
        self.texts: dict[bytes, str] = {}
        """Prepared statements' texts, by name."""
        self.ran: list[str] = []
        """The statements of the transaction so far."""
        self.is_silent = False

    async def run(self) -> None:
        ways = [
            asyncio.create_task(self._copy(self.client[0], self.server[1], self._from_client)),
            asyncio.create_task(self._copy(self.server[0], self.client[1], self._from_server)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, look) -> None:  # noqa: ANN001
        while True:
            head = await reader.readexactly(5)
            body = await reader.readexactly(int.from_bytes(head[1:]) - 4)
            await self.proxy.passing()
            fault = look(head[:1], body)
            if fault and fault.action == "drop":
                return
            if fault and fault.action == "silence":
                self.is_silent = True
            if fault and fault.action == "hold":
                while not fault._released.is_set():
                    await asyncio.sleep(0.01)
            # NotificationResponse, of a server; clients send nothing of that letter.
            is_dropped = head[:1] == b"A" and self.proxy.drops_notifications
            if not self.is_silent and not is_dropped:
                writer.write(head + body)
                await writer.drain()

    def _from_client(self, kind: bytes, body: bytes) -> CommitFault | None:
        match kind:
            case b"Q":
                text = body.rstrip(b"\0").decode(errors="replace")
            case b"P":
                name, text, _ = body.split(b"\0", 2)
                self.texts[name] = text.decode(errors="replace")
                return None
            case b"B":
                _, name, _ = body.split(b"\0", 2)
                text = self.texts.get(name, "")
            case _:
                return None
        word = text.lstrip()[:8].upper()
        if word.startswith("BEGIN"):
            self.ran = []
        elif word.startswith("COMMIT"):
            return self.proxy.fault("request", self.ran)
        else:
            self.ran.append(text)
        return None

    def _from_server(self, kind: bytes, body: bytes) -> CommitFault | None:
        # CommandComplete, with the command's name.
        return self.proxy.fault("answer", self.ran) if kind == b"C" and body == b"COMMIT\0" else None


@contextlib.contextmanager
def losing(proxy: PostgreSQLProxy, fault: CommitFault):  # noqa: ANN201
    """A fault that is over with the block."""
    proxy.lose(fault)
    try:
        yield fault
    finally:
        proxy.heal()
