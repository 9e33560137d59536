// Tests databases of older releases, opened by this one: they keep what they have, and go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "broker/core/core.h"
#include "broker/core/fingerprint.h"
#include "contract/filter.h"
#include "contract/honoured.h"
#include "contract/refusals.h"
#include "contract/run_key.h"
#include "contract/validate.h"
#include "tests/unit/store/take_over_fixture.h"
#include "tests/unit/store/version_1.h"
#include "tests/unit/store/version_2.h"

namespace muster::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST_F(TakeOverTest, AFileOfVersion1KeepsEverythingAndTakesHoldsAndRetries) {
  Take(kVersion1Dump);
  ASSERT_NE(store_, nullptr);
  const core::Restored restored = Restore(kStart);
  EXPECT_EQ(restored.instance, "k7m2");
  EXPECT_EQ(restored.broker_epoch, 4u);
  ASSERT_THAT(restored.jobs, SizeIs(3));
  for (const core::LiveJob& job : restored.jobs) {
    EXPECT_EQ(job.hold, core::HoldState::kNone);
    EXPECT_EQ(job.retry_time, std::nullopt);
  }
  EXPECT_EQ(restored.jobs[0].priority, 5);
  EXPECT_TRUE(restored.jobs[2].cancel_requested);
  EXPECT_THAT(restored.runs, SizeIs(2));
  EXPECT_THAT(restored.requests, SizeIs(1));
  const v1::Job waiting = Get(1);
  EXPECT_EQ(waiting.name(), "waits");
  EXPECT_EQ(waiting.labels().at("team"), "vision");
  EXPECT_FALSE(waiting.held());
  EXPECT_EQ(Get(3).state(), v1::JOB_STATE_SUCCEEDED);

  core::Change held = Update(1, v1::JOB_STATE_QUEUED, 2);
  std::get<core::UpdateJob>(held).hold = core::HoldState::kHeld;
  std::get<core::UpdateJob>(held).retry_time = kStart;
  EXPECT_OK(store_->Commit({held, Step(1, 7, 2), Insert(5), Step(5, 8, 1)}));
  Open();
  EXPECT_TRUE(Get(1).held());
  EXPECT_TRUE(Get(1).has_retry_time());
  EXPECT_EQ(Get(1).labels().at("team"), "vision");
  EXPECT_FALSE(Get(5).held());
}

// ---- version 2, from one that was in use

// Shortly after its last transition.
const absl::Time kLater = absl::FromUnixSeconds(1'795'443'700);

struct OldJob {
  uint64_t id = 0;
  std::string name;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  uint64_t steps = 0;
  std::vector<v1::RunState> runs = {};
  core::HoldState hold = core::HoldState::kNone;
  bool cancel_requested = false;
};

std::vector<OldJob> OldJobs() {
  using enum core::HoldState;
  const auto queued = v1::JOB_STATE_QUEUED;
  const auto pending = v1::JOB_STATE_PENDING;
  const auto running = v1::JOB_STATE_RUNNING;
  return {
      {1, "train.py", queued, 1},
      {2, "held", queued, 2, {}, kHeld},
      {3, "bench", queued, 1},
      {4, "pair", queued, 1},
      {5, "runs", running, 5, {v1::RUN_STATE_RUNNING}},
      {6, "done", v1::JOB_STATE_SUCCEEDED, 6, {v1::RUN_STATE_SUCCEEDED}},
      {7, "logs", v1::JOB_STATE_SUCCEEDED, 6, {v1::RUN_STATE_SUCCEEDED}},
      {8, "fails", v1::JOB_STATE_FAILED, 6, {v1::RUN_STATE_FAILED}},
      {9, "retries", queued, 7, {v1::RUN_STATE_FAILED}},
      {10, "stops", running, 6, {v1::RUN_STATE_RUNNING}, kNone, true},
      {11, "hold-asked", pending, 5, {v1::RUN_STATE_PENDING}, kHeld},
      {12, "released", pending, 6, {v1::RUN_STATE_PENDING}, kReleased},
      {13, "lost", v1::JOB_STATE_FAILED, 6, {v1::RUN_STATE_LOST}},
      {14, "pauses", v1::JOB_STATE_SUSPENDED, 6, {v1::RUN_STATE_SUSPENDED}},
      {15, "runs", running, 10, {v1::RUN_STATE_FAILED, v1::RUN_STATE_RUNNING}},
      {16, "stopped", v1::JOB_STATE_CANCELED, 3, {}, kNone, true},
  };
}

bool HasEnded(const OldJob& job) { return job.state >= v1::JOB_STATE_SUCCEEDED; }

class Version2Test : public TakeOverTest {
 protected:
  Version2Test() { Take(kVersion2Dump); }
};

TEST_F(Version2Test, KeepsEveryJobAndRun) {
  for (const OldJob& old : OldJobs()) {
    SCOPED_TRACE(old.id);
    const v1::Job job = Get(old.id);
    EXPECT_EQ(job.name(), old.name);
    EXPECT_EQ(job.spec().name(), old.name);
    EXPECT_OK(contract::CheckHonoured(job.spec()));
    EXPECT_EQ(job.project(), old.id == 3 ? "vision" : "default");
    EXPECT_EQ(job.user(), "root");
    EXPECT_EQ(job.state(), old.state);
    EXPECT_EQ(job.job_sequence(), old.steps);
    EXPECT_EQ(job.held(), old.hold == core::HoldState::kHeld);
    EXPECT_EQ(job.cancel_requested(), old.cancel_requested);
    EXPECT_EQ(job.has_end_time(), HasEnded(old));
    EXPECT_GT(job.create_time().seconds(), 0);
    std::vector<v1::RunState> runs;
    for (const v1::Run& run : job.runs()) {
      EXPECT_EQ(run.cluster(), "lab");
      EXPECT_EQ(run.run_key(), contract::RunKey({"v6q1", old.id, run.number()}).ToString());
      runs.push_back(run.state());
    }
    EXPECT_EQ(runs, old.runs);
  }
  EXPECT_EQ(store_->GetJob(Scope::All(), 17).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(Version2Test, KeepsWhatJobsAskFor) {
  const v1::JobSpec waits = Get(1).spec();
  EXPECT_THAT(waits.command().argv().args(), ElementsAre("train.py", "--lr", "0.1"));
  EXPECT_EQ(waits.priority(), 5);
  EXPECT_EQ(waits.env().at("A"), "1");
  EXPECT_EQ(waits.resources().gpus(0).type(), "H100");
  EXPECT_EQ(waits.resources().gpus(0).count_millis(), 8000u);
  EXPECT_EQ(Get(2).spec().command().script(), "#!/bin/sh\nsleep 60\n");
  EXPECT_EQ(Get(3).spec().slurm().partition(), "long");
  EXPECT_TRUE(Get(3).spec().retry().on_preemption());
  EXPECT_EQ(Get(4).spec().roles(1).command().argv().args(0), "ask");
  EXPECT_EQ(Get(5).spec().time_limit().seconds(), 3600);
  EXPECT_EQ(Get(5).spec().retry().max_runs(), 3u);
}

TEST_F(Version2Test, KeepsWhatBecameOfRuns) {
  EXPECT_EQ(Get(8).exit().code(), 3);
  EXPECT_EQ(Get(8).failure().message(), "the command ended with exit code 3");
  EXPECT_EQ(Get(9).failure().message(), "node n1 failed");
  EXPECT_TRUE(Get(9).has_retry_time());
  EXPECT_EQ(Get(5).runs(0).nodes(0), "n1");
  EXPECT_EQ(Get(5).runs(0).external_id(), "pid-5");
  EXPECT_EQ(Get(15).runs(1).nodes(0), "n2");
  EXPECT_TRUE(Get(6).runs(0).logs_complete());
  EXPECT_FALSE(Get(7).runs(0).logs_complete());
}

TEST_F(Version2Test, KeepsTheWholeHistory) {
  const auto all = store_->ListTransitions(Scope::All(), {}, 0, 1000);
  ASSERT_TRUE(all.ok()) << all.status();
  std::map<uint64_t, uint64_t> steps;
  uint64_t sequence = 0;
  std::set<v1::TransitionKind> kinds;
  for (const JobTransition& one : *all) {
    EXPECT_EQ(one.transition.sequence(), ++sequence);
    EXPECT_EQ(one.transition.job_sequence(), ++steps[one.job]);
    EXPECT_NE(one.transition.evidence().source(), v1::EVIDENCE_SOURCE_UNSPECIFIED);
    EXPECT_FALSE(one.transition.evidence().detail().empty());
    kinds.insert(one.transition.kind());
  }
  EXPECT_EQ(sequence, 77u);
  for (const OldJob& old : OldJobs()) EXPECT_EQ(steps[old.id], old.steps) << old.id;
  EXPECT_THAT(kinds, UnorderedElementsAre(
                         v1::TRANSITION_KIND_UNSPECIFIED, v1::TRANSITION_KIND_SUBMITTED,
                         v1::TRANSITION_KIND_CANCEL_REQUESTED, v1::TRANSITION_KIND_HOLD_REQUESTED,
                         v1::TRANSITION_KIND_RELEASE_REQUESTED, v1::TRANSITION_KIND_RETRY));
}

TEST_F(Version2Test, FindsItsJobsByFilters) {
  const auto list = [&](const std::string& filter) {
    const auto page = store_->ListJobs(
        Scope::All(), store::ListQuery{.filter = *contract::ParseFilter(filter, absl::UnixEpoch()),
                                       .page_size = 100});
    EXPECT_TRUE(page.ok()) << page.status();
    std::vector<uint64_t> ids;
    for (const v1::Job& job : page->jobs) ids.push_back(job.id());
    return ids;
  };
  EXPECT_THAT(list("label.team = vision"), ElementsAre(1));
  EXPECT_THAT(list("project = vision"), ElementsAre(3));
  EXPECT_THAT(list("name = runs"), ElementsAre(15, 5));
  EXPECT_THAT(list("state = FAILED"), ElementsAre(13, 8));
  EXPECT_THAT(list("cluster = lab"), SizeIs(11));
  EXPECT_THAT(list(""), SizeIs(16));
}

TEST_F(Version2Test, RestoresWhatHasNotEnded) {
  const core::Restored restored = Restore(kLater);
  EXPECT_EQ(restored.instance, "v6q1");
  EXPECT_EQ(restored.broker_epoch, 1u);
  EXPECT_EQ(restored.next_job_id, 17u);
  EXPECT_EQ(restored.next_sequence, 78u);
  ASSERT_THAT(restored.clusters, SizeIs(1));
  EXPECT_EQ(restored.clusters[0].name, "lab");
  EXPECT_EQ(restored.clusters[0].kind, v1::CLUSTER_KIND_MACHINES);
  EXPECT_EQ(restored.clusters[0].journal_id, "journal-of-lab");
  EXPECT_EQ(restored.clusters[0].acked_event_sequence, 44u);
  EXPECT_EQ(restored.clusters[0].inventory.pools(0).node_groups(0).cpus(), 64u);
  std::vector<OldJob> live = OldJobs();
  std::erase_if(live, HasEnded);
  ASSERT_EQ(restored.jobs.size(), live.size());
  for (size_t i = 0; i < live.size(); ++i) {
    SCOPED_TRACE(live[i].id);
    EXPECT_EQ(restored.jobs[i].id, live[i].id);
    EXPECT_EQ(restored.jobs[i].state, live[i].state);
    EXPECT_EQ(restored.jobs[i].hold, live[i].hold);
    EXPECT_EQ(restored.jobs[i].cancel_requested, live[i].cancel_requested);
    EXPECT_EQ(restored.jobs[i].runs, live[i].runs.size());
    EXPECT_EQ(restored.jobs[i].retry_time.has_value(), live[i].id == 9);
  }
  EXPECT_THAT(restored.runs, SizeIs(8)) << "those that have not ended or may have more logs";
}

// Runs the broker's core over such a database: what waits is placed, and agents go on where they
// were.
class Version2CoreTest : public Version2Test {
 protected:
  Version2CoreTest() { core_.emplace(core::Options(), Restore(kLater)); }

  core::Output Do(core::Input input, absl::Time now = kLater) {
    core::Output out;
    core_->Handle(std::move(input), now, &out);
    core_->PlaceJobs(now, &out);
    EXPECT_OK(store_->Commit(out.changes));
    EXPECT_OK(core_->CheckInvariants());
    return out;
  }

  // Returns the agent of "lab", with every run in its journal.
  core::Output Connect(absl::Time now = kLater) {
    core::AgentConnected connected;
    connected.session = 1;
    connected.hello.set_protocol_version(1);
    connected.hello.set_cluster("lab");
    connected.hello.set_kind(v1::CLUSTER_KIND_MACHINES);
    connected.hello.set_agent_version("1.1");
    connected.hello.set_journal_id("journal-of-lab");
    connected.hello.set_instance("v6q1");
    connected.hello.set_broker_epoch(1);
    connected.hello.set_max_active_runs(100);
    *connected.hello.mutable_inventory() = Restore(now).clusters[0].inventory;
    for (const uint64_t job : {5, 7, 10, 11, 12, 14}) Holds(&connected, job, 1);
    Holds(&connected, 15, 2);
    return Do(std::move(connected), now);
  }

  static void Holds(core::AgentConnected* agent, uint64_t job, uint32_t run) {
    agent->hello.add_runs()->set_run_key(contract::RunKey({"v6q1", job, run}).ToString());
  }

  static std::vector<uint64_t> Assigned(const core::Output& out) {
    std::vector<uint64_t> jobs;
    for (const core::Effect& effect : out.effects) {
      const auto* send = std::get_if<core::SendAssignments>(&effect);
      if (send == nullptr) continue;
      for (const agent::v1::Assignment& one : send->assignments) jobs.push_back(one.job_id());
    }
    return jobs;
  }

  core::Output Report(uint64_t job, uint32_t run, v1::RunState state) {
    core::AgentReported report;
    report.session = 1;
    agent::v1::RunEvent* event = report.events.add_events();
    event->set_sequence(++event_);
    event->set_run_key(contract::RunKey({"v6q1", job, run}).ToString());
    event->set_state(state);
    event->mutable_evidence()->set_source(v1::EVIDENCE_SOURCE_PROCESS);
    return Do(std::move(report));
  }

  std::optional<core::Core> core_;
  uint64_t event_ = 44;
};

TEST_F(Version2CoreTest, GoesOnWithItsAgent) {
  EXPECT_THAT(Assigned(Connect()), IsEmpty());
  Report(5, 1, v1::RUN_STATE_SUCCEEDED);
  Report(14, 1, v1::RUN_STATE_SUCCEEDED);
  Report(15, 2, v1::RUN_STATE_SUCCEEDED);
  for (const uint64_t job : {5, 14, 15}) EXPECT_EQ(Get(job).state(), v1::JOB_STATE_SUCCEEDED);
  Report(10, 1, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(Get(10).state(), v1::JOB_STATE_CANCELED);
  Open();
  EXPECT_EQ(Get(15).state(), v1::JOB_STATE_SUCCEEDED);
}

TEST_F(Version2CoreTest, KeepsTheTimeOfTheNextRun) {
  const absl::Time due = absl::FromUnixMicros(1'795'447'246'379'256);
  EXPECT_THAT(Assigned(Connect(due - absl::Seconds(1))), IsEmpty());
  EXPECT_THAT(Assigned(Do(core::Tick{}, due)), ElementsAre(9));
}

// The specs as the clients had sent them, then and now.
std::map<uint64_t, std::pair<std::string, v1::JobSpec>> OldRequests() {
  std::map<uint64_t, std::pair<std::string, v1::JobSpec>> requests;
  const auto add = [&](uint64_t job, const std::string& request_id) -> v1::JobSpec& {
    requests[job].first = request_id;
    return requests[job].second;
  };
  const auto plain = [&](uint64_t job, const std::string& name) -> v1::JobSpec& {
    v1::JobSpec& spec = add(job, "r-" + name);
    spec.set_name(name);
    spec.mutable_command()->mutable_argv()->add_args("true");
    return spec;
  };
  v1::JobSpec& waits = add(1, "r-waits");
  for (const char* word : {"train.py", "--lr", "0.1"})
    waits.mutable_command()->mutable_argv()->add_args(word);
  waits.set_priority(5);
  (*waits.mutable_labels())["stage"] = "dev";
  (*waits.mutable_labels())["team"] = "vision";
  (*waits.mutable_env())["B"] = "2";
  (*waits.mutable_env())["A"] = "1";
  v1::GpuRequest& gpus = *waits.mutable_resources()->add_gpus();
  gpus.set_type("H100");
  gpus.set_count_millis(8000);
  v1::JobSpec& held = add(2, "r-held");  // it had sent some of the defaults itself
  held.set_name("held");
  held.set_project("default");
  held.set_nodes(1);
  held.mutable_command()->set_script("#!/bin/sh\nsleep 60\n");
  v1::JobSpec& slurm = add(3, "r-slurm");
  slurm.set_project("vision");
  slurm.set_nodes(2);
  slurm.mutable_command()->mutable_argv()->add_args("bench");
  slurm.mutable_slurm()->set_partition("long");
  slurm.mutable_retry()->set_on_preemption(true);
  v1::JobSpec& roles = add(4, "r-roles");
  roles.set_name("pair");
  roles.set_nodes(3);
  v1::Role& server = *roles.add_roles();
  server.set_name("server");
  server.set_nodes(1);
  server.mutable_command()->mutable_argv()->add_args("serve");
  v1::Role& client = *roles.add_roles();
  client.set_name("client");
  client.set_first_node(1);
  client.mutable_command()->mutable_argv()->add_args("ask");
  v1::JobSpec& runs = plain(5, "runs");
  runs.mutable_time_limit()->set_seconds(3600);
  runs.mutable_retry()->set_max_runs(3);
  plain(6, "done");
  plain(9, "retries").mutable_retry()->mutable_backoff()->set_seconds(3600);
  plain(16, "stopped");
  return requests;
}

TEST_F(Version2CoreTest, KnowsEachRequestThatWasAcceptedBeforeTheUpgrade) {
  const auto submit = [this](const std::string& request_id, const v1::JobSpec& sent) {
    const auto spec = contract::NormalizeJobSpec(sent);
    EXPECT_TRUE(spec.ok()) << spec.status();
    core::Output out = Do(core::Submit{.ticket = 1,
                                       .items = {{std::make_shared<v1::JobSpec>(*spec), request_id,
                                                  core::RequestFingerprintOf(sent)}},
                                       .user = "root"});
    return std::get<core::SubmitReply>(out.effects.at(0)).result;
  };
  for (auto [job, request] : OldRequests()) {
    SCOPED_TRACE(request.first);
    const auto repeated = submit(request.first, request.second);
    const auto* response = std::get_if<v1::SubmitJobsResponse>(&repeated);
    ASSERT_NE(response, nullptr);
    EXPECT_EQ(response->responses(0).job_id(), job);
    EXPECT_TRUE(response->responses(0).repeated_request());
    request.second.set_priority(7);
    const auto refused = submit(request.first, request.second);
    const auto* refusal = std::get_if<contract::Refusal>(&refused);
    ASSERT_NE(refusal, nullptr);
    EXPECT_TRUE(std::holds_alternative<contract::refused::RequestIdReused>(refusal->why));
  }
}

TEST_F(Version2CoreTest, LetsGoOnWhatItsUserReleases) {
  Connect();
  const core::Output out =
      Do(core::Hold{.ticket = 1, .jobs = {2}, .reason = "", .user = "root", .held = false});
  EXPECT_THAT(Assigned(out), ElementsAre(2));
}

}  // namespace
}  // namespace muster::store
