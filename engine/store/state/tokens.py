"""The rows of the tokens table."""

from collections.abc import Iterable

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.models import Token


class NameTaken(Exception):
    """A live token has this name already."""


class Tokens:
    """Rows handed out are copies: changing one changes nothing in the database."""

    def __init__(self, state: State) -> None:
        self._state = state

    def add(self, token: Token) -> None:
        """Raises NameTaken."""
        try:
            with self._state.writing() as session:
                session.add(token)
        except IntegrityError as error:
            raise NameTaken(f"a token named {token.name!r} exists; revoke it first") from error

    def all(self) -> list[Token]:
        """Revoked ones too, oldest first."""
        with self._state.reading() as session:
            return list(session.scalars(select(Token).order_by(Token.created_ns, Token.id)))

    def revoke(self, id_or_name: str, now_ns: int) -> Token | None:
        """The token that this revoked; None where no live one has this id or, failing that, name.

        The row stays, so that `all` tells who had access and when.
        """
        live = select(Token).where(Token.revoked_ns.is_(None))
        with self._state.writing() as session:
            token = session.scalar(live.where(Token.id == id_or_name))
            token = token or session.scalar(live.where(Token.name == id_or_name))
            if token is not None:
                token.revoked_ns = now_ns
        return token

    def mark_used(self, ids: Iterable[str], now_ns: int) -> None:
        with self._state.writing() as session:
            session.execute(
                update(Token).where(Token.id.in_(list(ids))).values(last_used_ns=now_ns)
            )
