"""Rows that differ in their provider, optional components or pins have cells of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

Name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
KEY = ("stack", "gpu", "base")
WORDS = ("run", "command", "outcome", "at", "failure", "issue")


def upgrade() -> None:
    """What is on record until now was of several such rows at once: it stays with the plain one."""
    for table in ("runs", "promotions"):
        op.add_column(table, _variant())
    # a column becomes part of the key: no SQLite can do that in place
    op.rename_table("cells", "cells_before")
    op.create_table(
        "cells",
        *(sa.Column(name, Name, primary_key=True) for name in KEY[:2]),
        _variant(primary_key=True),
        sa.Column(KEY[2], Name, primary_key=True),
        sa.Column("number", Number, nullable=False),
        *(sa.Column(name, Name, nullable=False) for name in WORDS),
        sa.Column("seen", sa.JSON, nullable=False),
        sa.Column("channels", sa.JSON, nullable=False),
        sa.Column("whole_seconds", sa.Float),
    )
    names = (*KEY, "number", *WORDS, "seen", "channels", "whole_seconds")
    before, cells = (sa.table(name, *map(sa.column, names)) for name in ("cells_before", "cells"))
    op.execute(sa.insert(cells).from_select(names, sa.select(*before.c)))
    op.drop_table("cells_before")


def _variant(*, primary_key: bool = False) -> sa.Column[str]:
    return sa.Column("variant", Name, primary_key=primary_key, nullable=False, server_default="")
