"""A loopback port of the host that leads to a port inside the lab, for programs that stay outside.

A socket belongs to the network namespace of the thread that made it, wherever it is used afterwards. So one thread
enters the lab and makes sockets; everything else is ordinary.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.machines import namespaces

_CHUNK = 64 * 1024
"""As much as is held of a connection that one side reads slowly, twice over."""
_PATIENCE = 10.0


@contextlib.asynccontextmanager
async def forwarding(
    listen: tuple[str, int], namespace: Path, target: tuple[str, int], report: Callable[[str], None]
) -> AsyncIterator[int]:
    """Forward while the block lasts. Gives the port, which the kernel chose if 0 was asked for."""
    with ThreadPoolExecutor(1, initializer=namespaces.enter, initargs=(namespace,)) as inside:
        connections: set[asyncio.Task[None]] = set()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            try:
                await _serve(inside, target, reader, writer, report)
            finally:
                connections.discard(task)

        try:
            server = await asyncio.start_server(accept, *listen, limit=_CHUNK, backlog=512)
        except OSError as error:
            raise FalseworkError(
                f"{listen[0]} port {listen[1]} cannot be listened on",
                cause=error.strerror,
                fix="choose another port with --port; 0 takes any that is free",
            ) from None
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in connections:
                task.cancel()
            await asyncio.gather(*connections, return_exceptions=True)


async def _serve(
    inside: ThreadPoolExecutor,
    target: tuple[str, int],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    report: Callable[[str], None],
) -> None:
    async with _closing(writer):
        try:
            there, towards = await asyncio.wait_for(_connect(inside, target), _PATIENCE)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else "no answer"
            report(f"{target[0]} port {target[1]} in the lab: {reason}")
            return
        async with _closing(towards):
            # One side may have said all it has to say and still listen.
            await asyncio.gather(_copy(reader, towards), _copy(there, writer))


async def _connect(
    inside: ThreadPoolExecutor, target: tuple[str, int]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    made = await loop.run_in_executor(inside, socket.socket, socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        await loop.sock_connect(made, target)
        return await asyncio.open_connection(sock=made, limit=_CHUNK)
    except BaseException:
        made.close()
        raise


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(_CHUNK):
            sink.write(chunk)
            await sink.drain()
        sink.write_eof()
    except OSError:
        # One side is gone without a word: so is the connection, for both.
        sink.transport.abort()


@contextlib.asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    writer.transport.set_write_buffer_limits(high=_CHUNK)
    try:
        yield
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
