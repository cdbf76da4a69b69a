BEGIN TRANSACTION;
CREATE TABLE about (
	name TEXT NOT NULL, 
	changed INTEGER NOT NULL, 
	cells INTEGER NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "about" VALUES('9291b7ebd973495889ff150afcc3aed5',2,2);
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
INSERT INTO "alembic_version" VALUES('0001');
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
CREATE TABLE cells (
	stack TEXT NOT NULL, 
	gpu TEXT NOT NULL, 
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
	PRIMARY KEY (stack, gpu, base)
);
INSERT INTO "cells" VALUES('vllm','gfx1151','debian:sid',1,'run-1','build','built','2026-01-01T00:00:00Z','','','{"built": ["run-1", "2026-01-01T00:00:00Z", "", "1 steps were run", 1]}','{"nightly": ["run-1", "2026-01-02T00:00:00Z", "", "it was built", 1]}',7.0);
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
CREATE TABLE locks (
	sha256 TEXT NOT NULL, 
	packed BLOB NOT NULL, 
	PRIMARY KEY (sha256)
);
CREATE TABLE promotions (
	number INTEGER NOT NULL, 
	stack TEXT NOT NULL, 
	gpu TEXT NOT NULL, 
	base TEXT NOT NULL, 
	channel TEXT NOT NULL, 
	run TEXT NOT NULL, 
	lock TEXT NOT NULL, 
	at TEXT NOT NULL, 
	"by" TEXT NOT NULL, 
	why TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "promotions" VALUES(1,'vllm','gfx1151','debian:sid','nightly','run-1','','2026-01-02T00:00:00Z','cycle 1','it was built');
CREATE TABLE run_gpus (
	gpu TEXT NOT NULL, 
	run INTEGER NOT NULL, 
	PRIMARY KEY (gpu, run), 
	FOREIGN KEY(run) REFERENCES runs (number)
);
INSERT INTO "run_gpus" VALUES('gfx1151',1);
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
INSERT INTO "runs" VALUES(1,'run-1','build','vllm','["gfx1151"]','debian:sid','ended','built','2026-01-01T00:00:00Z','',7.0,0,'','','{}','','','0.1.0','built','','','');
CREATE TABLE samples (
	run INTEGER NOT NULL, 
	step TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	memory INTEGER NOT NULL, 
	processes INTEGER NOT NULL, 
	PRIMARY KEY (run, step, at), 
	FOREIGN KEY(run) REFERENCES runs (number)
);
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
INSERT INTO "step_times" VALUES('vllm','torch',0,1,5.0,NULL,0,0.0,0);
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
INSERT INTO "steps" VALUES(1,0,'torch','','','k','ended','built','',5.0,'','',0,NULL,'{}','{}','[]','{}');
CREATE INDEX runs_by_state ON runs (state, number) WHERE state <> 'ended';
CREATE INDEX runs_by_base ON runs (base, number);
CREATE INDEX runs_by_lock ON runs (lock, number) WHERE lock <> '';
CREATE INDEX runs_by_origin ON runs (origin, number) WHERE origin <> '';
CREATE INDEX runs_by_failure ON runs (failure, number) WHERE failure <> '';
CREATE INDEX runs_by_issue ON runs (issue, number) WHERE issue <> '';
CREATE INDEX runs_by_time ON runs (started);
CREATE INDEX runs_by_outcome ON runs (outcome, number);
CREATE INDEX runs_by_stack ON runs (stack, number);
CREATE INDEX promotions_by_cell ON promotions (stack, gpu, base, number);
CREATE INDEX steps_by_name ON steps (name, run);
CREATE INDEX steps_by_component ON steps (component, kind, run);
CREATE INDEX findings_by_artifact ON findings (sha256, run);
CREATE INDEX artifacts_by_content ON artifacts (sha256, run);
CREATE INDEX artifacts_by_component ON artifacts (component, run);
COMMIT;
