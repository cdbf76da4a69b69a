CREATE TABLE about (
    name TEXT NOT NULL,
    changed INTEGER NOT NULL,
    cells INTEGER NOT NULL,
    PRIMARY KEY (name)
);
CREATE TABLE runs (
    number INTEGER NOT NULL,
    id TEXT NOT NULL,
    command TEXT NOT NULL,
    stack TEXT NOT NULL,
    gpu JSON NOT NULL,
    base TEXT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT NOT NULL,
    started TEXT NOT NULL,
    ended TEXT NOT NULL,
    seconds FLOAT NOT NULL,
    cached INTEGER NOT NULL,
    origin TEXT NOT NULL,
    lock TEXT NOT NULL,
    variant TEXT DEFAULT '' NOT NULL,
    versions JSON NOT NULL,
    machine TEXT NOT NULL,
    process TEXT NOT NULL,
    rocwright TEXT NOT NULL,
    said TEXT NOT NULL,
    device TEXT NOT NULL,
    failure TEXT NOT NULL,
    issue TEXT NOT NULL,
    PRIMARY KEY (number),
    UNIQUE (id)
);
CREATE INDEX runs_by_stack ON runs (stack, number);
CREATE INDEX runs_by_outcome ON runs (outcome, number);
CREATE INDEX runs_by_issue ON runs (issue, number) WHERE issue <> '';
CREATE INDEX runs_by_state ON runs (state, number) WHERE state <> 'ended';
CREATE INDEX runs_by_failure ON runs (failure, number) WHERE failure <> '';
CREATE INDEX runs_by_lock ON runs (lock, number) WHERE lock <> '';
CREATE INDEX runs_by_time ON runs (started);
CREATE INDEX runs_by_base ON runs (base, number);
CREATE INDEX runs_by_origin ON runs (origin, number) WHERE origin <> '';
CREATE TABLE step_times (
    stack TEXT NOT NULL,
    name TEXT NOT NULL,
    warm BOOLEAN NOT NULL,
    run INTEGER NOT NULL,
    seconds FLOAT NOT NULL,
    peak_memory INTEGER,
    jobs INTEGER NOT NULL,
    cached FLOAT NOT NULL,
    counted INTEGER NOT NULL,
    PRIMARY KEY (stack, name, warm)
);
CREATE TABLE locks (
    sha256 TEXT NOT NULL,
    packed BLOB NOT NULL,
    PRIMARY KEY (sha256)
);
CREATE TABLE cells (
    stack TEXT NOT NULL,
    gpu TEXT NOT NULL,
    variant TEXT DEFAULT '' NOT NULL,
    base TEXT NOT NULL,
    number INTEGER NOT NULL,
    run TEXT NOT NULL,
    command TEXT NOT NULL,
    outcome TEXT NOT NULL,
    at TEXT NOT NULL,
    failure TEXT NOT NULL,
    issue TEXT NOT NULL,
    seen JSON NOT NULL,
    channels JSON NOT NULL,
    whole_seconds FLOAT,
    PRIMARY KEY (stack, gpu, variant, base)
);
CREATE TABLE promotions (
    number INTEGER NOT NULL,
    stack TEXT NOT NULL,
    gpu TEXT NOT NULL,
    base TEXT NOT NULL,
    variant TEXT DEFAULT '' NOT NULL,
    channel TEXT NOT NULL,
    run TEXT NOT NULL,
    lock TEXT NOT NULL,
    at TEXT NOT NULL,
    "by" TEXT NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY (number)
);
CREATE INDEX promotions_by_cell ON promotions (stack, gpu, base, number);
CREATE TABLE run_gpus (
    gpu TEXT NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (gpu, run),
    FOREIGN KEY(run) REFERENCES runs (number)
);
CREATE TABLE steps (
    run INTEGER NOT NULL,
    place INTEGER NOT NULL,
    name TEXT NOT NULL,
    component TEXT NOT NULL,
    kind TEXT NOT NULL,
    "key" TEXT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT NOT NULL,
    started TEXT NOT NULL,
    seconds FLOAT NOT NULL,
    log TEXT NOT NULL,
    engine TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    peak_memory INTEGER,
    compiler_cache JSON NOT NULL,
    error JSON NOT NULL,
    needs JSON NOT NULL,
    figures JSON NOT NULL,
    PRIMARY KEY (run, place),
    FOREIGN KEY(run) REFERENCES runs (number)
);
CREATE INDEX steps_by_name ON steps (name, run);
CREATE INDEX steps_by_component ON steps (component, kind, run);
CREATE TABLE samples (
    run INTEGER NOT NULL,
    step TEXT NOT NULL,
    at FLOAT NOT NULL,
    memory INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    PRIMARY KEY (run, step, at),
    FOREIGN KEY(run) REFERENCES runs (number)
);
CREATE TABLE findings (
    run INTEGER NOT NULL,
    place INTEGER NOT NULL,
    component TEXT NOT NULL,
    "check" TEXT NOT NULL,
    name TEXT NOT NULL,
    ok BOOLEAN NOT NULL,
    absent BOOLEAN NOT NULL,
    detail TEXT NOT NULL,
    device TEXT NOT NULL,
    artifact TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    "when" TEXT NOT NULL,
    machine TEXT NOT NULL,
    engine TEXT NOT NULL,
    PRIMARY KEY (run, place),
    FOREIGN KEY(run) REFERENCES runs (number)
);
CREATE INDEX findings_by_artifact ON findings (sha256, run);
CREATE TABLE artifacts (
    run INTEGER NOT NULL,
    component TEXT NOT NULL,
    filename TEXT NOT NULL,
    step TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (run, component, filename),
    FOREIGN KEY(run) REFERENCES runs (number)
);
CREATE INDEX artifacts_by_content ON artifacts (sha256, run);
CREATE INDEX artifacts_by_component ON artifacts (component, run);
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
