#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "clients/cpp/client.h"
#include "daemon/process.h"
#include "tests/bench/tools/connect.h"
#include "tests/bench/tools/histogram.h"
#include "tests/bench/tools/sim_agent.h"
#include "tests/bench/tools/submitter.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {
namespace {

constexpr absl::Duration kConnectPatience = absl::Seconds(30);
constexpr absl::Duration kLookInterval = absl::Milliseconds(20);
constexpr absl::Duration kRetryInterval = absl::Milliseconds(1);
constexpr absl::Duration kIdlePatience = absl::Seconds(60);  // without any progress: give up
constexpr uint32_t kMaxActiveRuns = 10000;
constexpr absl::Duration kBeatInterval = absl::Seconds(1);
constexpr int kMaxEvents = 1000;  // in one message; the protocol says so

agent::v1::RunEvent MakeEvent(const agent::v1::Assignment& assignment, v1::RunState state) {
  agent::v1::RunEvent event;
  event.set_run_key(assignment.run_key());
  event.set_state(state);
  event.mutable_evidence()->set_source(v1::EVIDENCE_SOURCE_PROCESS);
  event.mutable_evidence()->mutable_observed_at()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  if (state == v1::RUN_STATE_PENDING) event.set_external_id("4711");
  if (state == v1::RUN_STATE_SUCCEEDED) {
    event.mutable_exit();
    event.set_logs_complete(true);
  }
  return event;
}

// Spreads jobs over time, and has the agents tell meanwhile that they are there.
class Pace {
 public:
  // A `per_s` of 0 means no pace.
  Pace(int per_s, std::function<void()> beat)
      : per_s_(per_s), beat_(std::move(beat)), next_beat_(start_ + kBeatInterval) {}

  // Waits until the next jobs are due.
  void Await(int jobs) {
    if (per_s_ == 0) return;
    absl::SleepFor(start_ + absl::Seconds(1) * jobs_ / per_s_ - absl::Now());
    jobs_ += jobs;
    if (absl::Now() < next_beat_) return;
    beat_();
    next_beat_ += kBeatInterval;
  }

 private:
  const int per_s_;
  const std::function<void()> beat_;
  const absl::Time start_ = absl::Now();
  int64_t jobs_ = 0;  // that were due before
  absl::Time next_beat_;
};

// Carries every run through its life, on a thread of its own.
class LifeAgent {
 public:
  LifeAgent(agents::Dialer* dialer, int number, bool ends_runs)
      : ends_runs_(ends_runs),
        agent_(dialer, fmt::format("bench-{}", number), kMaxActiveRuns,
               [this](const agent::v1::Assignments& assignments) {
                 std::lock_guard lock(mutex_);
                 waiting_.push_back(assignments);
                 changed_.notify_one();
               }) {}

  ~LifeAgent() { Stop(); }

  bool Connect() {
    if (!agent_.Connect(kConnectPatience)) return false;
    thread_ = std::thread([this] { Work(); });
    return true;
  }

  // Ends the runs of an agent that does not end them by itself; no more will be assigned.
  void EndRuns(Pace* pace) {
    Stop();
    for (const agent::v1::Assignments& runs : running_) {
      pace->Await(runs.assignments_size());
      Say(runs, {v1::RUN_STATE_SUCCEEDED});
    }
  }
  void Beat() { agent_.Beat(); }

 private:
  void Work() {
    while (std::optional<agent::v1::Assignments> next = Next()) {
      Say(*next, {v1::RUN_STATE_LAUNCHING, v1::RUN_STATE_PENDING});
      if (ends_runs_) {
        Say(*next, {v1::RUN_STATE_RUNNING, v1::RUN_STATE_SUCCEEDED});
      } else {
        Say(*next, {v1::RUN_STATE_RUNNING});
        running_.push_back(*std::move(next));
      }
    }
  }

  void Stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

  std::optional<agent::v1::Assignments> Next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return std::nullopt;
    agent::v1::Assignments next = std::move(waiting_.front());
    waiting_.pop_front();
    return next;
  }

  void Say(const agent::v1::Assignments& assignments, std::vector<v1::RunState> states) {
    agent::v1::RunEvents events;
    for (const agent::v1::Assignment& assignment : assignments.assignments()) {
      for (v1::RunState state : states) *events.add_events() = MakeEvent(assignment, state);
      if (events.events_size() + static_cast<int>(states.size()) > kMaxEvents) {
        SendAll(std::exchange(events, {}));
      }
    }
    if (events.events_size() > 0) SendAll(events);
  }

  void SendAll(const agent::v1::RunEvents& events) {
    while (!agent_.Send(events)) absl::SleepFor(kRetryInterval);
  }

  const bool ends_runs_;
  std::vector<agent::v1::Assignments> running_;  // Work's, later EndRuns'
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<agent::v1::Assignments> waiting_;
  bool stopping_ = false;
  std::thread thread_;
  SimAgent agent_;
};

absl::Status CouldNotConnect() { return absl::UnavailableError("an agent could not connect"); }

// Waits until no job is left that has not ended and is not held.
absl::Status AwaitAllEnded(const Load& load) {
  auto client = MakeClient(load);
  if (!client.ok()) return client.status();
  v1::ListJobsRequest request;
  request.set_filter("NOT (state = SUCCEEDED OR state = FAILED OR state = CANCELED)");
  request.set_page_size(2);
  const absl::Time end = absl::Now() + kIdlePatience;
  while (absl::Now() < end) {
    absl::StatusOr<v1::ListJobsResponse> page = (*client)->ListJobs(request);
    if (!page.ok()) return page.status();
    const bool none = std::all_of(page->jobs().begin(), page->jobs().end(),
                                  [](const v1::Job& job) { return job.held(); });
    if (none && page->next_page_token().empty()) return absl::OkStatus();
    request.set_page_token(none ? page->next_page_token() : "");
    if (!none) absl::SleepFor(kLookInterval);
  }
  return absl::DeadlineExceededError("jobs did not end");
}

// Waits until all jobs run.
absl::Status AwaitAllRunning(const Load& load) {
  auto client = MakeClient(load);
  if (!client.ok()) return client.status();
  v1::CountJobsRequest request;
  request.set_filter("state = RUNNING");
  const absl::Time end = absl::Now() + kIdlePatience;
  while (absl::Now() < end) {
    const absl::StatusOr<v1::CountJobsResponse> count = (*client)->CountJobs(request);
    if (!count.ok()) return count.status();
    if (count->total() == load.jobs) return absl::OkStatus();
    absl::SleepFor(kLookInterval);
  }
  return absl::DeadlineExceededError("the jobs did not all run at the same time");
}

// Submits jobs one by one, as they are due.
absl::StatusOr<uint64_t> SubmitAtPace(const Load& load, Pace pace) {
  auto client = MakeClient(load);
  if (!client.ok()) return client.status();
  for (uint64_t i = 0; i < load.jobs; ++i) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = SampleSpec(i);
    pace.Await(1);
    if (auto answer = (*client)->SubmitJob(request); !answer.ok()) return answer.status();
  }
  return load.jobs;
}

absl::StatusOr<uint64_t> SubmitAtOnce(const Load& load) {
  absl::StatusOr<Submitted> submitted = RunSubmits(load);
  if (!submitted.ok()) return submitted.status();
  return submitted->jobs;
}

}  // namespace

absl::Status FullLife(const Load& load) {
  auto dialer = MakeDialer(load);
  if (!dialer.ok()) return dialer.status();
  std::vector<std::unique_ptr<LifeAgent>> agents;
  for (int i = 0; i < load.agents; ++i) {
    agents.push_back(std::make_unique<LifeAgent>(dialer->get(), i, !load.together));
    if (!agents.back()->Connect()) return CouldNotConnect();
  }
  const auto beat = [&agents] {
    for (const auto& agent : agents) agent->Beat();
  };
  const absl::Time start = absl::Now();
  const absl::StatusOr<uint64_t> jobs =
      load.pace > 0 ? SubmitAtPace(load, Pace(load.pace, beat)) : SubmitAtOnce(load);
  if (!jobs.ok()) return jobs.status();
  if (load.together) {
    if (absl::Status status = AwaitAllRunning(load); !status.ok()) return status;
    Pace pace(load.pace, beat);
    for (const auto& agent : agents) agent->EndRuns(&pace);
  }
  if (absl::Status status = AwaitAllEnded(load); !status.ok()) return status;
  fmt::print("{{\"per_s\": {:.1f}}}\n", *jobs / absl::ToDoubleSeconds(absl::Now() - start));
  return absl::OkStatus();
}

absl::Status AssignLatency(const Load& load) {
  auto dialer = MakeDialer(load);
  if (!dialer.ok()) return dialer.status();
  auto client = MakeClient(load);
  if (!client.ok()) return client.status();
  absl::Mutex mutex;
  absl::flat_hash_map<std::string, absl::Time> sent;  // by job name
  Histogram latencies;
  const int jobs = load.rate * load.seconds;
  SimAgent agent(dialer->get(), "bench-0", jobs + 1,
                 [&](const agent::v1::Assignments& assignments) {
                   const absl::Time now = absl::Now();
                   absl::MutexLock lock(&mutex);
                   for (const agent::v1::Assignment& one : assignments.assignments()) {
                     auto it = sent.find(one.spec().name());
                     if (it == sent.end()) continue;
                     latencies.Add(now - it->second);
                     sent.erase(it);
                   }
                 });
  if (!agent.Connect(kConnectPatience)) return CouldNotConnect();
  // Several senders, because one that waits for each answer cannot keep up the rate.
  std::vector<std::thread> senders;
  std::vector<absl::Status> failures(load.in_flight);
  const absl::Time start = absl::Now() + absl::Milliseconds(100);
  for (int s = 0; s < load.in_flight; ++s) {
    senders.emplace_back([&, s] {
      for (int i = s; i < jobs; i += load.in_flight) {
        absl::SleepFor(start + absl::Seconds(1) * i / load.rate - absl::Now());
        v1::SubmitJobRequest request;
        *request.mutable_spec() = SampleSpec(i);
        {
          absl::MutexLock lock(&mutex);
          sent[request.spec().name()] = absl::Now();
        }
        if (auto answer = (*client)->SubmitJob(request); !answer.ok()) {
          failures[s] = answer.status();
          return;
        }
        if (i % load.rate == 0) agent.Beat();
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  for (const absl::Status& failure : failures) {
    if (!failure.ok()) return failure;
  }
  absl::MutexLock lock(&mutex);
  auto none_left = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return sent.empty(); };
  if (!mutex.AwaitWithTimeout(absl::Condition(&none_left), kIdlePatience)) {
    return absl::DeadlineExceededError(fmt::format("{} jobs were never assigned", sent.size()));
  }
  fmt::print("{{\"p50_ms\": {:.3f}, \"p99_ms\": {:.3f}}}\n",
             absl::ToDoubleMilliseconds(latencies.Percentile(0.5)),
             absl::ToDoubleMilliseconds(latencies.Percentile(0.99)));
  return absl::OkStatus();
}

absl::Status FirstAssignment(const Load& load) {
  auto dialer = MakeDialer(load);
  if (!dialer.ok()) return dialer.status();
  absl::Mutex mutex;
  absl::Time first = absl::InfiniteFuture();
  const absl::Time end = absl::Now() + absl::Seconds(load.seconds);
  while (absl::Now() < end) {
    SimAgent agent(dialer->get(), "bench-0", 1, [&](const agent::v1::Assignments&) {
      absl::MutexLock lock(&mutex);
      first = std::min(first, absl::Now());
    });
    if (!agent.Connect(absl::Seconds(5))) {
      absl::SleepFor(absl::Milliseconds(10));
      continue;
    }
    absl::MutexLock lock(&mutex);
    auto assigned = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      return first != absl::InfiniteFuture();
    };
    if (!mutex.AwaitWithDeadline(absl::Condition(&assigned), end)) break;
    fmt::print("{{\"unix_s\": {:.6f}}}\n", absl::ToDoubleSeconds(first - absl::UnixEpoch()));
    return absl::OkStatus();
  }
  return absl::DeadlineExceededError("no assignment came");
}

absl::Status HoldAgents(const Load& load) {
  RaiseDescriptorLimit();
  // Over TLS each agent has a connection and a certificate of its own.
  std::vector<std::unique_ptr<agents::Dialer>> dialers;
  std::vector<std::unique_ptr<SimAgent>> agents;
  for (int i = 0; i < load.agents; ++i) {
    if (i == 0 || !load.dir.empty()) {
      auto dialer = MakeDialer(load, load.dir.empty() ? "" : IdentityDirectory(load, i));
      if (!dialer.ok()) return dialer.status();
      dialers.push_back(*std::move(dialer));
    }
    agents.push_back(std::make_unique<SimAgent>(dialers.back().get(), fmt::format("idle-{}", i),
                                                1000, [](const agent::v1::Assignments&) {}));
    if (!agents.back()->Connect(kConnectPatience)) return CouldNotConnect();
  }
  fmt::print("{{\"agents\": {}}}\n", agents.size());
  std::fflush(stdout);
  // One beat of each agent in each interval, spread evenly.
  std::atomic<bool> stopping = false;
  std::thread beats([&] {
    const absl::Duration interval = absl::Seconds(load.seconds) / load.agents;
    for (size_t i = 0; !stopping; i = (i + 1) % agents.size()) {
      agents[i]->Beat();
      absl::SleepFor(interval);
    }
  });
  AwaitEndOfInput();
  stopping = true;
  beats.join();
  return absl::OkStatus();
}

}  // namespace muster::bench
