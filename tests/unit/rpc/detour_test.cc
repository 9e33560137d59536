// Tests the calls that the effects thread leaves to others, because they look into the store.
#include "broker/engine/detour.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "broker/engine/change_feed.h"
#include "broker/engine/change_tail.h"
#include "broker/engine/effects.h"
#include "broker/store/memory/memory_store.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DetourTest, KeepsTheOrderAndHoldsAKeyUntilItsLastTaskIsDone) {
  Detour detour(/*max_rows=*/10);
  std::vector<int> done;
  for (int i = 0; i < 3; ++i) detour.Post(/*key=*/7, /*rows=*/1, [&done, i] { done.push_back(i); });
  EXPECT_TRUE(detour.Holds(7));
  EXPECT_FALSE(detour.Holds(8));
  detour.Start();
  detour.Stop();
  EXPECT_FALSE(detour.Holds(7));
  EXPECT_THAT(done, ElementsAre(0, 1, 2));
}

TEST(DetourTest, WhoPostsWaitsWhileTooManyRowsDo) {
  Detour detour(/*max_rows=*/10);
  std::promise<void> go, third;
  detour.Start();
  detour.Post(1, 100, [&go] { go.get_future().wait(); });
  detour.Post(1, 10, [] {});
  auto posting =
      std::async(std::launch::async, [&] { detour.Post(1, 1, [&third] { third.set_value(); }); });
  EXPECT_EQ(posting.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  go.set_value();
  posting.get();
  third.get_future().wait();
  detour.Stop();
}

// A store whose readers wait for the test.
class ShutStore : public store::MemoryStore {
 public:
  ShutStore() : MemoryStore(kInstance) {}

  void Open() { open_.set_value(); }
  void FailSpecs() { specs_fail_ = true; }

  absl::StatusOr<v1::Job> GetJob(const store::Scope& scope, uint64_t id) const override {
    is_open_.wait();
    return MemoryStore::GetJob(scope, id);
  }
  absl::StatusOr<std::vector<v1::Job>> GetJobs(const store::Scope& scope,
                                               absl::Span<const uint64_t> ids) const override {
    is_open_.wait();
    return MemoryStore::GetJobs(scope, ids);
  }
  absl::StatusOr<std::vector<store::StoredSpec>> GetSpecs(
      const store::Scope& scope, absl::Span<const uint64_t> ids) const override {
    is_open_.wait();
    if (specs_fail_) return absl::UnavailableError("the disk is gone");
    return MemoryStore::GetSpecs(scope, ids);
  }

 private:
  std::promise<void> open_;
  std::shared_future<void> is_open_ = open_.get_future().share();
  bool specs_fail_ = false;
};

// Notes what it is sent.
class NotingPeer : public AgentPeer {
 public:
  bool Send(agent::v1::ConnectResponse message) override {
    const std::lock_guard lock(mutex_);
    if (message.has_assignments()) {
      for (const auto& assignment : message.assignments().assignments())
        sent_.push_back("run of " + assignment.spec().name());
    } else {
      sent_.push_back("message");
    }
    return true;
  }
  void Close(const absl::Status&) override {
    const std::lock_guard lock(mutex_);
    sent_.push_back("close");
  }
  void Handled() override {}
  void Ask(agent::v1::AgentQuestion, std::chrono::steady_clock::time_point, Answered) override {}

  std::vector<std::string> sent() const {
    const std::lock_guard lock(mutex_);
    return sent_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> sent_;
};

class DetouredEffectsTest : public testing::Test {
 protected:
  static constexpr uint64_t kStored = 1;  // a job that the effects have not seen

  DetouredEffectsTest() {
    EXPECT_TRUE(store_.Commit(Inserted(kStored, "stored")).ok());
    effects_.Start();
  }
  // Stops before the objects go that the detours use.
  void TearDown() override { effects_.Stop(); }

  static core::Changes Inserted(uint64_t job, const std::string& name) {
    v1::JobSpec spec = TrueSpec();
    spec.set_name(name);
    core::InsertJob insert;
    insert.id = job;
    insert.spec = std::make_shared<const v1::JobSpec>(std::move(spec));
    return {std::move(insert)};
  }
  static core::SendAssignments Assign(core::SessionId session, uint64_t job) {
    core::SendAssignments send{.session = session, .assignments = {}};
    agent::v1::Assignment& assignment = send.assignments.emplace_back();
    assignment.set_job_id(job);
    assignment.set_run(1);
    return send;
  }
  static core::SendToAgent Message(core::SessionId session) {
    core::SendToAgent send{.session = session, .message = {}};
    send.message.mutable_event_ack();
    return send;
  }
  // Makes one more change of a job, and the news of it.
  static core::Output Changed(uint64_t job, uint64_t sequence) {
    core::Output output;
    v1::Transition transition;
    transition.set_sequence(sequence);
    transition.set_job_state(v1::JOB_STATE_PENDING);
    output.changes.push_back(core::AppendTransition{job, transition});
    output.effects.push_back(core::JobsChanged{{job}, sequence});
    return output;
  }
  // Makes a step of the one run of the job.
  static core::AppendTransition StepOf(uint64_t job, uint64_t sequence, v1::RunState run_state,
                                       v1::JobState after) {
    core::AppendTransition append{.job = job, .transition = {}};
    append.transition.set_job_sequence(sequence);
    append.transition.set_sequence(sequence);
    append.transition.set_run(1);
    append.transition.set_run_state(run_state);
    append.transition.set_job_state(after);
    return append;
  }
  static core::PutRun RunOf(uint64_t job, v1::RunState state, uint64_t sequence = 0) {
    core::PutRun put{.job = job, .run = {}, .is_last = false, .sequence = sequence};
    put.run.set_number(1);
    put.run.set_cluster("gpu");
    put.run.set_state(state);
    return put;
  }
  static core::UpdateJob UpdateOf(uint64_t job, uint64_t job_sequence, v1::JobState state) {
    core::UpdateJob update;
    update.id = job;
    update.state = state;
    update.job_sequence = job_sequence;
    update.runs = 1;
    update.cluster = "gpu";
    return update;
  }
  // Commits and carries out as the engine does. The store is ahead of what is carried out.
  void CommitAndCarryOut(core::Changes changes, uint64_t job, uint64_t sequence) {
    EXPECT_TRUE(store_.Commit(changes).ok());
    core::Output output;
    output.changes = std::move(changes);
    output.effects.push_back(core::JobsChanged{{job}, sequence});
    effects_.CarryOut(std::move(output));
  }
  std::vector<TailEntry> Entries() const {
    const auto all = [](const TailEntry&) { return true; };
    return tail_.ReadAfter(0, 100, 1 << 20, all).entries;
  }
  static v1::Job JobOf(const ChangeBytes& bytes) {
    v1::WatchJobsResponse message;
    EXPECT_TRUE(message.ParseFromString(*bytes));
    return message.changes(0).job();
  }
  std::vector<uint64_t> Shown() const {
    std::vector<uint64_t> sequences;
    for (const TailEntry& entry : Entries()) sequences.push_back(entry.sequence);
    return sequences;
  }

  ShutStore store_;
  ChangeTail tail_{{}, 0};
  ClusterBoard clusters_;
  ChangeFeed feed_{{}, &store_, &clusters_, &tail_};
  std::vector<uint64_t> told_;  // sequences, to watchers
  AgentSessions agents_;
  UseBoard uses_;
  Effects effects_{
      &store_, &feed_,   &clusters_,
      &uses_,  &agents_, [this](const core::JobsChanged& news) { told_.push_back(news.sequence); }};
};

TEST_F(DetouredEffectsTest, AnAgentWhoseSpecsAreReadKeepsTheOrderAndHoldsUpNobody) {
  auto slow = std::make_shared<NotingPeer>(), other = std::make_shared<NotingPeer>();
  const core::SessionId a = agents_.Open("gpu", "journal", slow),
                        b = agents_.Open("gpu", "journal", other);
  bool is_answered = false;
  const core::Ticket ticket = effects_.Expect(StatusDone([&](auto) { is_answered = true; }));
  core::Output output{.changes = Inserted(2, "new"), .clusters = {}, .uses = {}, .effects = {}};
  output.effects = {Message(a),
                    Assign(a, kStored),
                    Message(a),
                    Assign(a, 2),
                    core::StatusReply{.ticket = ticket},
                    core::CloseAgent{.session = a},
                    Message(b)};
  effects_.CarryOut(std::move(output));
  EXPECT_TRUE(is_answered);
  EXPECT_THAT(other->sent(), ElementsAre("message"));
  EXPECT_THAT(slow->sent(), ElementsAre("message"));
  store_.Open();
  effects_.Stop();
  EXPECT_THAT(slow->sent(),
              ElementsAre("message", "run of stored", "message", "run of new", "close"));
}

TEST_F(DetouredEffectsTest, WhatIsInMemoryIsSentAtOnce) {
  auto peer = std::make_shared<NotingPeer>();
  const core::SessionId session = agents_.Open("gpu", "journal", peer);
  core::Output output{.changes = Inserted(2, "new"), .clusters = {}, .uses = {}, .effects = {}};
  output.effects = {Assign(session, 2), Message(session)};
  effects_.CarryOut(std::move(output));
  EXPECT_THAT(peer->sent(), ElementsAre("run of new", "message"));
  store_.Open();
}

TEST_F(DetouredEffectsTest, AnAgentWhoseSpecsCannotBeReadIsToConnectAgain) {
  auto peer = std::make_shared<NotingPeer>();
  const core::SessionId session = agents_.Open("gpu", "journal", peer);
  store_.FailSpecs();
  store_.Open();
  effects_.CarryOut({.changes = {},
                     .clusters = {},
                     .uses = {},
                     .effects = {Assign(session, kStored), Message(session)}});
  effects_.Stop();
  EXPECT_THAT(peer->sent(), ElementsAre("close"));
}

TEST_F(DetouredEffectsTest, ChangesOfJobsThatMustBeReadHoldUpNobodyAndStayInOrder) {
  tail_.Join();
  effects_.CarryOut(Changed(kStored, 1));
  core::Output next = Changed(2, 2);
  next.changes.insert(next.changes.begin(), Inserted(2, "new").front());
  effects_.CarryOut(std::move(next));
  EXPECT_THAT(Shown(), IsEmpty());
  store_.Open();
  effects_.Stop();
  EXPECT_THAT(Shown(), ElementsAre(1, 2));
  EXPECT_THAT(told_, ElementsAre(1, 2));
}

TEST_F(DetouredEffectsTest, AChangeThatIsShownLateShowsTheJobAsItWasAtItsStep) {
  ASSERT_TRUE(store_
                  .Commit(core::Changes{
                      StepOf(kStored, 1, v1::RUN_STATE_RUNNING, v1::JOB_STATE_RUNNING),
                      RunOf(kStored, v1::RUN_STATE_RUNNING),
                      UpdateOf(kStored, 1, v1::JOB_STATE_RUNNING),
                  })
                  .ok());
  tail_.Join();
  CommitAndCarryOut({RunOf(kStored, v1::RUN_STATE_RUNNING, 2)}, kStored, 2);
  // The detour stands still, and the store goes on: a label, and the end.
  core::AppendTransition edited = StepOf(kStored, 3, {}, v1::JOB_STATE_RUNNING);
  edited.transition.clear_run();
  edited.transition.set_kind(v1::TRANSITION_KIND_UPDATED);
  core::EditJob edit{.id = kStored, .job_sequence = 3, .sequence = 3, .priority = 7, .labels = {}};
  edit.labels = {{"team", "b"}};
  CommitAndCarryOut({edited, edit}, kStored, 3);
  core::PutRun ended = RunOf(kStored, v1::RUN_STATE_FAILED);
  ended.run.mutable_exit()->set_code(3);
  ended.run.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_PROGRAM);
  core::UpdateJob end = UpdateOf(kStored, 4, v1::JOB_STATE_FAILED);
  end.end_time = absl::FromUnixSeconds(1'750'000'000);
  CommitAndCarryOut({StepOf(kStored, 4, v1::RUN_STATE_FAILED, v1::JOB_STATE_FAILED), ended, end},
                    kStored, 4);
  store_.Open();
  effects_.Stop();

  const std::vector<TailEntry> entries = Entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_THAT(Shown(), ElementsAre(2, 3, 4));
  for (const ChangeBytes& bytes : {entries[0].before, entries[0].change}) {
    const v1::Job job = JobOf(bytes);
    EXPECT_EQ(job.state(), v1::JOB_STATE_RUNNING);
    EXPECT_EQ(job.job_sequence(), 1u);
    EXPECT_EQ(job.priority(), 0);
    EXPECT_TRUE(job.labels().empty());
    EXPECT_FALSE(job.has_end_time());
    EXPECT_FALSE(job.has_exit());
    EXPECT_FALSE(job.has_failure());
  }
  EXPECT_FALSE(entries[0].has_ended) << "who waits for the end would miss it";
  EXPECT_FALSE(entries[1].has_ended);
  EXPECT_EQ(JobOf(entries[1].change).labels().at("team"), "b");
  EXPECT_TRUE(entries[2].has_ended);
  EXPECT_EQ(JobOf(entries[2].change).exit().code(), 3);
}

TEST_F(DetouredEffectsTest, AChangeOfTheJobAloneShowsItsRunAsItWasAtTheStep) {
  ASSERT_TRUE(store_
                  .Commit(core::Changes{
                      StepOf(kStored, 1, v1::RUN_STATE_RUNNING, v1::JOB_STATE_RUNNING),
                      RunOf(kStored, v1::RUN_STATE_RUNNING),
                      UpdateOf(kStored, 1, v1::JOB_STATE_RUNNING),
                  })
                  .ok());
  tail_.Join();
  core::AppendTransition canceled = StepOf(kStored, 2, {}, v1::JOB_STATE_RUNNING);
  canceled.transition.clear_run();
  canceled.transition.set_kind(v1::TRANSITION_KIND_CANCEL_REQUESTED);
  core::UpdateJob asked = UpdateOf(kStored, 2, v1::JOB_STATE_RUNNING);
  asked.cancel_requested = true;
  CommitAndCarryOut({canceled, asked}, kStored, 2);
  core::PutRun ended = RunOf(kStored, v1::RUN_STATE_FAILED);
  ended.run.mutable_exit()->set_code(3);
  ASSERT_TRUE(store_
                  .Commit(core::Changes{
                      StepOf(kStored, 3, v1::RUN_STATE_FAILED, v1::JOB_STATE_CANCELED), ended})
                  .ok());
  store_.Open();
  effects_.Stop();
  ASSERT_EQ(Entries().size(), 1u);
  EXPECT_FALSE(JobOf(Entries()[0].before).cancel_requested());
  const v1::Job job = JobOf(Entries()[0].change);
  EXPECT_TRUE(job.cancel_requested());
  EXPECT_EQ(job.state(), v1::JOB_STATE_RUNNING);
  EXPECT_FALSE(job.has_exit());
}

TEST_F(DetouredEffectsTest, LateUsageIsShownWithTheRunOfTheStore) {
  core::PutRun ended = RunOf(kStored, v1::RUN_STATE_SUCCEEDED);
  ended.is_last = true;
  ASSERT_TRUE(store_
                  .Commit(core::Changes{
                      StepOf(kStored, 1, v1::RUN_STATE_SUCCEEDED, v1::JOB_STATE_SUCCEEDED), ended,
                      UpdateOf(kStored, 1, v1::JOB_STATE_SUCCEEDED)})
                  .ok());
  tail_.Join();
  core::PutUsage used;
  used.job = kStored;
  used.run = 1;
  used.cluster = ended.run.cluster();
  used.sequence = 2;
  used.usage.set_max_rss_bytes(4096);
  CommitAndCarryOut({used}, kStored, 2);
  store_.Open();
  effects_.Stop();
  ASSERT_EQ(Entries().size(), 1u);
  EXPECT_FALSE(JobOf(Entries()[0].before).runs_size() > 0);
  const v1::Job job = JobOf(Entries()[0].change);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(job.runs_size(), 1);
  EXPECT_EQ(job.runs(0).usage().max_rss_bytes(), 4096u);
}

TEST_F(DetouredEffectsTest, ChangesOfKnownJobsAreShownAtOnce) {
  tail_.Join();
  core::Output first = Changed(2, 1);
  first.changes.insert(first.changes.begin(), Inserted(2, "new").front());
  effects_.CarryOut(std::move(first));
  effects_.CarryOut(Changed(2, 2));
  EXPECT_THAT(Shown(), ElementsAre(1, 2));
  EXPECT_THAT(told_, ElementsAre(1, 2));
  store_.Open();
}

}  // namespace
}  // namespace muster::broker
