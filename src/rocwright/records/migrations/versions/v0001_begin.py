"""The first tables."""

from alembic import op
from sqlalchemy import JSON, BigInteger, Boolean, Column, Float, ForeignKey, Integer, LargeBinary, Text, text

revision = "0001"
down_revision = None

Number = BigInteger().with_variant(Integer, "sqlite")
Name = Text().with_variant(Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "about",
        Column("name", Name, primary_key=True),
        Column("changed", Number, nullable=False),
        Column("cells", Number, nullable=False),
    )
    op.create_table(
        "runs",
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
        Column("versions", JSON, nullable=False),
        Column("machine", Name, nullable=False),
        Column("process", Name, nullable=False),
        Column("rocwright", Name, nullable=False),
        Column("said", Name, nullable=False),
        Column("device", Name, nullable=False),
        Column("failure", Name, nullable=False),
        Column("issue", Name, nullable=False),
    )
    op.create_index("runs_by_stack", "runs", ["stack", "number"])
    op.create_index("runs_by_base", "runs", ["base", "number"])
    op.create_index("runs_by_outcome", "runs", ["outcome", "number"])
    op.create_index("runs_by_time", "runs", ["started"])
    for name, usual in {"state": "ended", "origin": "", "lock": "", "failure": "", "issue": ""}.items():
        where = text(f"{name} <> '{usual}'")
        op.create_index(
            f"runs_by_{name}", "runs", [name, "number"], sqlite_where=where, postgresql_where=where
        )
    op.create_table(
        "run_gpus",
        Column("gpu", Name, primary_key=True),
        Column("run", Number, ForeignKey("runs.number"), primary_key=True),
    )
    op.create_table(
        "steps",
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
    op.create_index("steps_by_name", "steps", ["name", "run"])
    op.create_index("steps_by_component", "steps", ["component", "kind", "run"])
    op.create_table(
        "step_times",
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
    op.create_table(
        "locks",
        Column("sha256", Name, primary_key=True),
        Column("packed", LargeBinary, nullable=False),
    )
    op.create_table(
        "samples",
        Column("run", Number, ForeignKey("runs.number"), primary_key=True),
        Column("step", Name, primary_key=True),
        Column("at", Float, primary_key=True),
        Column("memory", Number, nullable=False),
        Column("processes", Integer, nullable=False),
    )
    op.create_table(
        "findings",
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
    op.create_index("findings_by_artifact", "findings", ["sha256", "run"])
    op.create_table(
        "artifacts",
        Column("run", Number, ForeignKey("runs.number"), primary_key=True),
        Column("component", Name, primary_key=True),
        Column("filename", Name, primary_key=True),
        Column("step", Name, nullable=False),
        Column("sha256", Name, nullable=False),
        Column("size", Number, nullable=False),
    )
    op.create_index("artifacts_by_component", "artifacts", ["component", "run"])
    op.create_index("artifacts_by_content", "artifacts", ["sha256", "run"])
    op.create_table(
        "cells",
        Column("stack", Name, primary_key=True),
        Column("gpu", Name, primary_key=True),
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
    op.create_table(
        "promotions",
        Column("number", Number, primary_key=True, autoincrement=True),
        Column("stack", Name, nullable=False),
        Column("gpu", Name, nullable=False),
        Column("base", Name, nullable=False),
        Column("channel", Name, nullable=False),
        Column("run", Name, nullable=False),
        Column("lock", Name, nullable=False),
        Column("at", Name, nullable=False),
        Column("by", Name, nullable=False),
        Column("why", Name, nullable=False),
    )
    op.create_index("promotions_by_cell", "promotions", ["stack", "gpu", "base", "number"])
