"""What belongs to SQLAlchemy's ORM, recognised without importing it: who has such a thing has imported it.

The import takes long, and until it is done the statements that other threads make may fail: a keeper's, say.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from sqlalchemy.orm import Mapper, Session, scoped_session


def is_session(db: object) -> TypeGuard[Session | scoped_session[Any]]:
    """Whether it is a Session, or a scoped one."""
    return _is_of_orm(db, "Session") or _is_of_orm(db, "scoped_session")


def is_mapper(found: object) -> TypeGuard[Mapper[Any]]:
    """Whether it tells how a class is mapped to a table."""
    return _is_of_orm(found, "Mapper")


def _is_of_orm(thing: object, name: str) -> bool:
    orm = sys.modules.get("sqlalchemy.orm")
    return isinstance(thing, getattr(orm, name, ()))
