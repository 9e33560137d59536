// A database as the release with schema version 1 left it, as `.dump` of sqlite3 writes it: a job
// that waits (1), one that runs (2), one that has ended (3), and one that is being canceled (4).
#ifndef MUSTER_TESTS_UNIT_STORE_VERSION_1_H_
#define MUSTER_TESTS_UNIT_STORE_VERSION_1_H_

#include <string_view>

namespace muster::store {

inline constexpr std::string_view kVersion1Dump = R"sql(
BEGIN TRANSACTION;
CREATE TABLE broker (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  instance TEXT NOT NULL,
  epoch INTEGER NOT NULL
) STRICT;
INSERT INTO broker VALUES(1,'k7m2',4);
CREATE TABLE job (
  id INTEGER PRIMARY KEY,
  state INTEGER NOT NULL,
  job_sequence INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL,
  runs INTEGER NOT NULL,
  cluster TEXT NOT NULL,
  start_time INTEGER,
  end_time INTEGER,
  shape INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  create_time INTEGER NOT NULL,
  name TEXT NOT NULL,
  project TEXT NOT NULL,
  user TEXT NOT NULL,
  labels BLOB  -- a Job with nothing but labels
) STRICT;
INSERT INTO job VALUES(1,1,1,0,0,'',NULL,NULL,1,5,1750000000000000,'waits','default','alice',X'3a0e0a047465616d1206766973696f6e');
INSERT INTO job VALUES(2,3,2,0,1,'here',1750000005000000,NULL,1,0,1750000000000000,'runs','default','alice',NULL);
INSERT INTO job VALUES(3,5,3,0,1,'here',NULL,1750000009000000,1,0,1750000000000000,'done','default','alice',NULL);
INSERT INTO job VALUES(4,2,2,1,1,'here',NULL,NULL,1,0,1750000000000000,'stops','default','alice',NULL);
CREATE TABLE job_block (
  block INTEGER PRIMARY KEY,  -- id / 1024
  first_create_time INTEGER NOT NULL,
  last_create_time INTEGER NOT NULL
) STRICT;
INSERT INTO job_block VALUES(0,1750000000000000,1750000000000000);
CREATE TABLE job_spec (
  id INTEGER PRIMARY KEY,
  spec BLOB NOT NULL
) STRICT;
INSERT INTO job_spec VALUES(1,X'0a057761697473120764656661756c743a0c120a78787878787878787878520e0a047465616d1206766973696f6e5805');
INSERT INTO job_spec VALUES(2,X'0a0472756e73120764656661756c743a0c120a78787878787878787878');
INSERT INTO job_spec VALUES(3,X'0a04646f6e65120764656661756c743a0c120a78787878787878787878');
INSERT INTO job_spec VALUES(4,X'0a0573746f7073120764656661756c743a0c120a78787878787878787878');
CREATE TABLE request (
  job INTEGER PRIMARY KEY,
  request_id TEXT NOT NULL,
  fingerprint INTEGER NOT NULL
) STRICT;
INSERT INTO request VALUES(1,'r-1',-1152921504606846975);
CREATE TABLE label (
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  job INTEGER NOT NULL,
  PRIMARY KEY (key, value, job)
) STRICT, WITHOUT ROWID;
INSERT INTO label VALUES('team','vision',1);
CREATE TABLE run (
  id INTEGER PRIMARY KEY,  -- job * 65536 + number
  open INTEGER NOT NULL,   -- it has not ended, or the rest of its logs may still come
  run BLOB NOT NULL
) STRICT;
INSERT INTO run VALUES(131073,1,X'08011a04686572652006');
INSERT INTO run VALUES(196609,0,X'08011a046865726520097001');
INSERT INTO run VALUES(262145,1,X'08011a04686572652004');
CREATE TABLE transition (
  sequence INTEGER PRIMARY KEY,
  job INTEGER NOT NULL,
  transition BLOB NOT NULL
) STRICT;
INSERT INTO transition VALUES(1,1,X'08011001');
INSERT INTO transition VALUES(2,2,X'08011002');
INSERT INTO transition VALUES(3,3,X'08011003');
INSERT INTO transition VALUES(4,4,X'08011004');
INSERT INTO transition VALUES(5,2,X'08021005');
INSERT INTO transition VALUES(6,4,X'08021006');
CREATE TABLE shape (
  id INTEGER PRIMARY KEY,
  spec BLOB NOT NULL
) STRICT;
INSERT INTO shape VALUES(1,X'73686170652031');
CREATE TABLE cluster (
  name TEXT PRIMARY KEY,
  kind INTEGER NOT NULL,
  inventory BLOB NOT NULL,
  agent_version TEXT NOT NULL,
  journal_id TEXT NOT NULL,
  acked_event_sequence INTEGER NOT NULL,
  agent_epoch INTEGER NOT NULL,
  max_active_runs INTEGER NOT NULL,
  last_seen INTEGER NOT NULL
) STRICT;
INSERT INTO cluster VALUES('here',1,X'0a026974','1','j',7,3,1000,1750000000000000);
CREATE INDEX job_by_state ON job (state);
CREATE INDEX job_by_name ON job (name);
CREATE INDEX job_by_project ON job (project);
CREATE INDEX job_by_cluster ON job (cluster) WHERE cluster <> '';
CREATE INDEX job_by_end ON job (end_time) WHERE end_time IS NOT NULL;
CREATE INDEX run_open ON run (open) WHERE open = 1;
CREATE INDEX transition_by_job ON transition (job);
COMMIT;
PRAGMA application_id = 1297306706;
PRAGMA user_version = 1;
)sql";

}  // namespace muster::store

#endif  // MUSTER_TESTS_UNIT_STORE_VERSION_1_H_
