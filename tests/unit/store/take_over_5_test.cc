// Databases of versions 4 and 5, opened by this release.
#include <gmock/gmock.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "contract/honoured.h"
#include "tests/unit/store/take_over_fixture.h"
#include "tests/unit/store/version_5.h"

namespace muster::store {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class Version5Test : public TakeOverTest {
 protected:
  // Makes one more job, with its own row of a spec as that release kept them.
  static std::string CopyOfJob1(uint64_t id) {
    const std::string number = std::to_string(id);
    return "CREATE TEMP TABLE copy AS SELECT * FROM job WHERE id = 1;"
           "UPDATE copy SET id = " +
           number +
           "; INSERT INTO job SELECT * FROM copy; DROP TABLE copy;"
           "INSERT INTO job_spec SELECT " +
           number + ", spec FROM job_spec WHERE id = 1;";
  }
};

TEST_F(Version5Test, KeepsEachSpecOnce) {
  Take(kVersion5Dump);
  EXPECT_EQ(Count("job"), 10);
  // Jobs 2 to 4 share one, so do 6 and 10, and 8 and 9; three others have their own.
  EXPECT_EQ(Count("spec"), 6);
  EXPECT_EQ(Count("sqlite_schema WHERE name IN ('job_spec', 'shape')"), 0);
  const v1::JobSpec waits = Get(1).spec();
  EXPECT_EQ(waits.name(), "waits");
  EXPECT_EQ(waits.project(), "default");
  EXPECT_EQ(waits.priority(), 5);
  EXPECT_EQ(waits.labels().at("team"), "vision");
  EXPECT_EQ(waits.env().at("A"), "1");
  EXPECT_EQ(waits.resources().gpus(0).type(), "H100");
  EXPECT_THAT(waits.command().argv().args(), ElementsAre("python3", "train.py", "--lr", "0.1"));
  EXPECT_EQ(Get(4).spec().priority(), 7);
  EXPECT_EQ(Get(4).spec().labels().at("team"), "speech");
  EXPECT_TRUE(Get(3).spec().labels().empty());
  EXPECT_EQ(Get(3).spec().name(), "same");
  EXPECT_EQ(Get(10).rerun_of(), 6u);
  EXPECT_THAT(Get(10).spec().command().argv().args(), ElementsAre("true"));
  for (uint64_t id = 1; id <= 10; ++id) EXPECT_OK(contract::CheckHonoured(Get(id).spec()));
}

TEST_F(Version5Test, RestoresWhatHasNotEnded) {
  Take(kVersion5Dump);
  const core::Restored restored = Restore(absl::FromUnixSeconds(1'795'470'000));
  EXPECT_EQ(restored.next_job_id, 11u);
  std::vector<uint64_t> ids;
  for (const core::LiveJob& job : restored.jobs) ids.push_back(job.id);
  EXPECT_THAT(ids, ElementsAre(1, 2, 3, 4, 5, 8));
  EXPECT_EQ(restored.jobs[0].requirements, restored.jobs[3].requirements);
  EXPECT_NE(restored.jobs[3].requirements, restored.jobs[4].requirements);
  EXPECT_EQ(restored.jobs[4].hold, core::HoldState::kHeld);
  EXPECT_THAT(restored.requirements, SizeIs(3));
  EXPECT_THAT(restored.runs, SizeIs(1));
  EXPECT_THAT(restored.requests, SizeIs(10));
  core::Core core({}, restored);
  EXPECT_OK(core.CheckInvariants());
}

TEST_F(Version5Test, MovesMoreSpecsThanOneTransactionTakesAndGoesOnWhereItStopped) {
  std::string more = std::string(kVersion5Dump) + "BEGIN;";
  for (uint64_t id = 11; id <= 2500; ++id) more += CopyOfJob1(id);
  Take(more + "COMMIT");
  EXPECT_EQ(Count("spec"), 6);
  EXPECT_EQ(Get(2500).spec().env().at("A"), "1");
  store_.reset();
  // A process that ended after some of the transactions left it like this.
  Execute(
      "CREATE TABLE job_spec (id INTEGER PRIMARY KEY, spec BLOB NOT NULL) STRICT;"
      "CREATE TABLE shape (id INTEGER PRIMARY KEY, spec BLOB NOT NULL) STRICT;"
      "INSERT INTO job_spec SELECT j.id, s.spec FROM job j JOIN spec s ON s.id = j.spec"
      " WHERE j.id > 1000; UPDATE job SET spec = 1 WHERE id > 1000;"
      "DROP TABLE spec_use; CREATE TABLE request (job INTEGER PRIMARY KEY,"
      " request_id TEXT NOT NULL, fingerprint INTEGER NOT NULL) STRICT;"
      "INSERT INTO request SELECT id, request_id, fingerprint FROM job"
      " WHERE request_id IS NOT NULL; ALTER TABLE job DROP COLUMN request_id;"
      "ALTER TABLE job DROP COLUMN fingerprint; ALTER TABLE job DROP COLUMN failed_dependency;"
      "ALTER TABLE job DROP COLUMN withdrawal; ALTER TABLE job DROP COLUMN returned_runs;"
      "DROP TABLE share_use; DROP TABLE day_usage; ALTER TABLE cluster DROP COLUMN cordon;"
      "ALTER TABLE job DROP COLUMN fail_overs; ALTER TABLE cluster DROP COLUMN fence_delay;"
      "ALTER TABLE cluster DROP COLUMN lease;"
      "DROP TABLE edit; DROP INDEX run_by_change;"
      "ALTER TABLE run DROP COLUMN changed; PRAGMA user_version = 7");
  Open();
  EXPECT_EQ(Count("spec"), 6);
  EXPECT_EQ(Get(2500).spec().env().at("A"), "1");
  EXPECT_EQ(Get(2500).spec().name(), "waits");
}

TEST_F(TakeOverTest, ARunOfVersion4KeepsWhyItWaitsUntilItsAgentSaysItAnew) {
  core::Change old = RunOf(1, 1, v1::RUN_STATE_PENDING);
  v1::Run& run = std::get<core::PutRun>(old).run;
  const auto bytes = [&run] { return absl::BytesToHexString(run.SerializeAsString()); };
  const std::string without_reason = bytes();
  // That release wrote a sentence, and the time since which it holds.
  google::protobuf::UnknownFieldSet* fields = run.GetReflection()->MutableUnknownFields(&run);
  fields->AddLengthDelimited(7, "waiting for free nodes, first in line (Resources)");
  google::protobuf::Timestamp since;
  since.set_seconds(1'750'000'000);
  fields->AddLengthDelimited(17, since.SerializeAsString());
  // More runs than are read at a time, and those with a reason at both ends.
  Take(std::string(kVersion5Dump) +
       "DELETE FROM run; UPDATE job SET state = 2, runs = 1, cluster = 'lab' WHERE id IN (1, 10);"
       "INSERT INTO run VALUES (65537, 1, X'" +
       bytes() +
       "'); WITH RECURSIVE n(i) AS (SELECT 131073 UNION ALL SELECT i + 1 FROM n WHERE i < 131323)"
       " INSERT INTO run SELECT i, 1, X'" +
       without_reason + "' FROM n; INSERT INTO run VALUES (655361, 1, X'" + bytes() +
       "'); PRAGMA user_version = 4");
  ASSERT_NE(store_, nullptr);
  for (const uint64_t id : {1, 10}) {
    const v1::StateReason reason = Get(id).state_reason();
    EXPECT_EQ(reason.code(), v1::STATE_REASON_CODE_OTHER) << id;
    EXPECT_EQ(reason.message(), "waiting for free nodes, first in line (Resources)");
    EXPECT_EQ(reason.since().seconds(), 1'750'000'000);
  }
  EXPECT_FALSE(Get(2).has_state_reason());
  const v1::Run stored = Get(1).runs(0);
  EXPECT_TRUE(stored.GetReflection()->GetUnknownFields(stored).empty()) << "written anew";
}

}  // namespace
}  // namespace muster::store
