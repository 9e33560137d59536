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
  // Before what the detours use is gone.
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
  // One more change of a job, and the news of it.
  static core::Output Changed(uint64_t job, uint64_t sequence) {
    core::Output output;
    v1::Transition transition;
    transition.set_sequence(sequence);
    transition.set_job_state(v1::JOB_STATE_PENDING);
    output.changes.push_back(core::AppendTransition{job, transition, v1::JOB_STATE_QUEUED});
    output.effects.push_back(core::JobsChanged{{job}, sequence});
    return output;
  }
  std::vector<uint64_t> Shown() const {
    std::vector<uint64_t> sequences;
    const auto all = [](const TailEntry&) { return true; };
    for (const TailEntry& entry : tail_.ReadAfter(0, 100, 1 << 20, all).entries)
      sequences.push_back(entry.sequence);
    return sequences;
  }

  ShutStore store_;
  ChangeTail tail_{{}, 0};
  ChangeFeed feed_{{}, &store_, &tail_};
  ClusterBoard clusters_;
  std::vector<uint64_t> told_;  // sequences, to watchers
  Effects effects_{&store_, &feed_, &clusters_,
                   [this](const core::JobsChanged& news) { told_.push_back(news.sequence); }};
};

TEST_F(DetouredEffectsTest, AnAgentWhoseSpecsAreReadKeepsTheOrderAndHoldsUpNobody) {
  auto slow = std::make_shared<NotingPeer>(), other = std::make_shared<NotingPeer>();
  const core::SessionId a = effects_.Open(slow), b = effects_.Open(other);
  bool is_answered = false;
  const core::Ticket ticket = effects_.Expect(StatusDone([&](auto) { is_answered = true; }));
  core::Output output{.changes = Inserted(2, "new"), .clusters = {}, .effects = {}};
  output.effects = {Message(a),
                    Assign(a, kStored),
                    Message(a),
                    Assign(a, 2),
                    core::StatusReply{.ticket = ticket, .status = {}},
                    core::CloseAgent{.session = a, .status = absl::OkStatus()},
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
  const core::SessionId session = effects_.Open(peer);
  core::Output output{.changes = Inserted(2, "new"), .clusters = {}, .effects = {}};
  output.effects = {Assign(session, 2), Message(session)};
  effects_.CarryOut(std::move(output));
  EXPECT_THAT(peer->sent(), ElementsAre("run of new", "message"));
  store_.Open();
}

TEST_F(DetouredEffectsTest, AnAgentWhoseSpecsCannotBeReadIsToConnectAgain) {
  auto peer = std::make_shared<NotingPeer>();
  const core::SessionId session = effects_.Open(peer);
  store_.FailSpecs();
  store_.Open();
  effects_.CarryOut(
      {.changes = {}, .clusters = {}, .effects = {Assign(session, kStored), Message(session)}});
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
