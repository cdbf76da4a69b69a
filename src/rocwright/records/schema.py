"""The tables. A change of them changes `schema.sql` too, and VERSION in plain.py."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)

Number = BigInteger().with_variant(Integer, "sqlite")
# names are compared byte by byte everywhere: ranges of them are looked up in indexes
Name = Text().with_variant(Text(collation="C"), "postgresql")

# Bytes of a lock as JSON: one with some thousand packages has 1 MiB.
LARGEST_LOCK = 64 * 1024**2

metadata = MetaData()

# One row: the database's own name, and two counters that grow with each change, and each change of cells.
about = Table(
    "about",
    metadata,
    Column("name", Name, primary_key=True),
    Column("changed", Number, nullable=False),
    Column("cells", Number, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("id", Name, nullable=False, unique=True),
    Column("command", Name, nullable=False),
    Column("stack", Name, nullable=False),
    Column("gpu", JSON, nullable=False),
    Column("base", Name, nullable=False),
    Column("state", Name, nullable=False),
    Column("outcome", Name, nullable=False),
    Column("started", Name, nullable=False),
    Column("ended", Name, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("cached", Integer, nullable=False),
    Column("origin", Name, nullable=False),
    Column("lock", Name, nullable=False),
    Column("variant", Name, nullable=False, server_default=""),
    Column("versions", JSON, nullable=False),
    Column("machine", Name, nullable=False),
    Column("process", Name, nullable=False),
    Column("rocwright", Name, nullable=False),
    Column("said", Name, nullable=False),
    Column("device", Name, nullable=False),
    Column("failure", Name, nullable=False),
    Column("issue", Name, nullable=False),
)
Index("runs_by_stack", runs.c.stack, runs.c.number)
Index("runs_by_base", runs.c.base, runs.c.number)
Index("runs_by_outcome", runs.c.outcome, runs.c.number)
Index("runs_by_time", runs.c.started)
# Columns that mostly hold one word: what else they hold has an index, which is small.
RARE = {"state": "ended", "origin": "", "lock": "", "failure": "", "issue": ""}

for _name, _usual in RARE.items():
    # for a server `make_tables` says it: it loads all that SQLAlchemy has for servers
    Index(f"runs_by_{_name}", runs.c[_name], runs.c.number, sqlite_where=text(f"{_name} <> '{_usual}'"))

run_gpus = Table(
    "run_gpus",
    metadata,
    Column("gpu", Name, primary_key=True),
    Column("run", Number, ForeignKey("runs.number"), primary_key=True),
)

steps = Table(
    "steps",
    metadata,
    Column("run", Number, ForeignKey("runs.number"), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("name", Name, nullable=False),
    Column("component", Name, nullable=False),
    Column("kind", Name, nullable=False),
    Column("key", Name, nullable=False),
    Column("state", Name, nullable=False),
    Column("outcome", Name, nullable=False),
    Column("started", Name, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("log", Name, nullable=False),
    Column("engine", Name, nullable=False),
    Column("jobs", Integer, nullable=False),
    Column("peak_memory", Number),
    Column("compiler_cache", JSON, nullable=False),
    Column("error", JSON, nullable=False),
    Column("needs", JSON, nullable=False),
    Column("figures", JSON, nullable=False),
)
Index("steps_by_name", steps.c.name, steps.c.run)
Index("steps_by_component", steps.c.component, steps.c.kind, steps.c.run)

# What each step of each stack took when it was last built, with a cold and with a warm compiler cache.
step_times = Table(
    "step_times",
    metadata,
    Column("stack", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("warm", Boolean, primary_key=True),
    Column("run", Number, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("peak_memory", Number),
    Column("jobs", Integer, nullable=False),
    Column("cached", Float, nullable=False),
    Column("counted", Integer, nullable=False),
)

# Each lock that a run had, as JSON, packed by zlib.
locks = Table(
    "locks",
    metadata,
    Column("sha256", Name, primary_key=True),
    Column("packed", LargeBinary, nullable=False),
)

samples = Table(
    "samples",
    metadata,
    Column("run", Number, ForeignKey("runs.number"), primary_key=True),
    Column("step", Name, primary_key=True),
    Column("at", Float, primary_key=True),
    Column("memory", Number, nullable=False),
    Column("processes", Integer, nullable=False),
)

findings = Table(
    "findings",
    metadata,
    Column("run", Number, ForeignKey("runs.number"), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("component", Name, nullable=False),
    Column("check", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("ok", Boolean, nullable=False),
    Column("absent", Boolean, nullable=False),
    Column("detail", Name, nullable=False),
    Column("device", Name, nullable=False),
    Column("artifact", Name, nullable=False),
    Column("sha256", Name, nullable=False),
    Column("when", Name, nullable=False),
    Column("machine", Name, nullable=False),
    Column("engine", Name, nullable=False),
)
Index("findings_by_artifact", findings.c.sha256, findings.c.run)

artifacts = Table(
    "artifacts",
    metadata,
    Column("run", Number, ForeignKey("runs.number"), primary_key=True),
    Column("component", Name, primary_key=True),
    Column("filename", Name, primary_key=True),
    Column("step", Name, nullable=False),
    Column("sha256", Name, nullable=False),
    Column("size", Number, nullable=False),
)
Index("artifacts_by_component", artifacts.c.component, artifacts.c.run)
Index("artifacts_by_content", artifacts.c.sha256, artifacts.c.run)

# The newest of each stack, GPU, base and variant: the matrix is read from here, not from all runs.
cells = Table(
    "cells",
    metadata,
    Column("stack", Name, primary_key=True),
    Column("gpu", Name, primary_key=True),
    Column("variant", Name, primary_key=True, server_default=""),
    Column("base", Name, primary_key=True),
    Column("number", Number, nullable=False),
    Column("run", Name, nullable=False),
    Column("command", Name, nullable=False),
    Column("outcome", Name, nullable=False),
    Column("at", Name, nullable=False),
    Column("failure", Name, nullable=False),
    Column("issue", Name, nullable=False),
    Column("seen", JSON, nullable=False),
    Column("channels", JSON, nullable=False),
    Column("whole_seconds", Float),
)

promotions = Table(
    "promotions",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("stack", Name, nullable=False),
    Column("gpu", Name, nullable=False),
    Column("base", Name, nullable=False),
    Column("variant", Name, nullable=False, server_default=""),
    Column("channel", Name, nullable=False),
    Column("run", Name, nullable=False),
    Column("lock", Name, nullable=False),
    Column("at", Name, nullable=False),
    Column("by", Name, nullable=False),
    Column("why", Name, nullable=False),
)
Index("promotions_by_cell", promotions.c.stack, promotions.c.gpu, promotions.c.base, promotions.c.number)
