"""Just enough HTTP/2 to see the frames of one gRPC call, without a gRPC library between."""

import asyncio
from dataclasses import dataclass

DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, END_HEADERS = 1, 4


@dataclass(frozen=True)
class Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + payload


def _literal(name: bytes, value: bytes) -> bytes:
    """A header of HPACK, neither indexed nor compressed."""
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


async def open_call(
    port: int, path: str, *headers: tuple[bytes, bytes]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send the headers of a call on stream 1, and no message yet."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    block = b"".join(
        _literal(name, value)
        for name, value in (
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", path.encode()),
            (b":authority", b"localhost"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
            *headers,
        )
    )
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))
    writer.write(frame(HEADERS, END_HEADERS, 1, block))
    return reader, writer


def message(body: bytes) -> bytes:
    """The one message of a call, which ends the stream."""
    return frame(DATA, END_STREAM, 1, b"\0" + len(body).to_bytes(4, "big") + body)


async def answer(reader: asyncio.StreamReader) -> list[Frame]:
    """The headers and data of stream 1, up to the frame that ends it."""
    frames: list[Frame] = []
    while not frames or not frames[-1].flags & END_STREAM:
        head = await reader.readexactly(9)
        payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
        got = Frame(head[3], head[4], int.from_bytes(head[5:], "big"), payload)
        if got.stream == 1 and got.kind in (DATA, HEADERS):
            frames.append(got)
    return frames
