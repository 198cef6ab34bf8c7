"""Ports taken before anything else is done, so that a taken one is said at once."""

import errno
import socket
from collections.abc import Mapping

from tailburn.app.errors import UserError


def bound_sockets(host: str, ports: Mapping[str, int]) -> dict[str, socket.socket]:
    """One of each name. Raises UserError with a line for each that can't be had."""
    found: dict[str, socket.socket] = {}
    refused: list[str] = []
    for name, port in ports.items():
        try:
            found[name] = bound_socket(host, port, name)
        except UserError as error:
            refused += error.lines
    if refused:
        for bound in found.values():
            bound.close()
        raise UserError(*refused)
    return found


def bound_socket(host: str, port: int, name: str) -> socket.socket:
    """A bound socket that does not listen yet: senders are refused until it does.

    Raises UserError where the address can't be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise UserError(_complaint(host, port, name, error)) from None
    bound.setblocking(False)
    return bound


def _complaint(host: str, port: int, name: str, error: Exception) -> str:
    taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    if taken:
        return f"{name} {port} on {host} is taken: `tailburn doctor` says by whom"
    return f"{name} {port} on {host}: {getattr(error, 'strerror', None) or error}"
