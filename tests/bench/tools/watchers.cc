// Many watchers of all jobs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tests/bench/tools/connect.h"
#include "tests/bench/tools/tools.h"
#include "tests/bench/tools/watcher.h"

namespace muster::bench {
namespace {

// One connection has this many streams; gRPC's default limit is 100.
constexpr int kStreamsPerChannel = 50;
constexpr absl::Duration kBeginPatience = absl::Seconds(60);
// A watcher counts as finished after this silence, which is more than a heartbeat's interval.
constexpr absl::Duration kQuiet = absl::Seconds(30);
constexpr absl::Duration kLookAtAll = absl::Milliseconds(100);
constexpr int kPageSize = 1000;  // the most that a page may have

struct Watchers {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::vector<std::unique_ptr<Watcher>> all;
};

absl::Status Begin(const Load& load, bool reads, Watchers* watchers) {
  for (int i = 0; i < load.watchers; ++i) {
    if (i % kStreamsPerChannel == 0) {
      auto channel = NewChannel(load);
      if (!channel.ok()) return channel.status();
      watchers->channels.push_back(*std::move(channel));
    }
    watchers->all.push_back(std::make_unique<Watcher>(watchers->channels.back(), reads));
  }
  const absl::Time give_up = absl::Now() + kBeginPatience;
  for (const auto& watcher : watchers->all) {
    if (absl::Status status = watcher->AwaitBegin(give_up); !status.ok()) return status;
    if (watcher->begin() != watchers->all.front()->begin()) {
      return absl::FailedPreconditionError("jobs changed before all watched them");
    }
  }
  fmt::print("{{\"watchers\": {}}}\n", watchers->all.size());
  std::fflush(stdout);
  return absl::OkStatus();
}

// Waits until all have been given what there was when this was called.
absl::Status AwaitAll(const Watchers& watchers) {
  Watcher last(watchers.channels.front(), /*reads=*/false);
  if (absl::Status status = last.AwaitBegin(absl::Now() + kBeginPatience); !status.ok()) {
    return status;
  }
  uint64_t before = 0;
  absl::Time since = absl::Now();
  while (absl::Now() - since < kQuiet) {
    bool are_done = true;
    uint64_t changes = 0;
    for (const auto& watcher : watchers.all) {
      are_done = are_done && watcher->up_to() >= last.begin();
      changes += watcher->changes();
    }
    if (are_done) break;
    if (std::exchange(before, changes) != changes) since = absl::Now();
    absl::SleepFor(kLookAtAll);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> AllJobs(client::Client* client) {
  std::vector<uint64_t> jobs;
  v1::ListJobsRequest request;
  request.set_page_size(kPageSize);
  do {
    const auto page = client->ListJobs(request);
    if (!page.ok()) return page.status();
    for (const v1::Job& job : page->jobs()) jobs.push_back(job.id());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return jobs;
}

// Reads the transitions of all jobs after `begin` from disk, as ListTransitions tells them.
absl::StatusOr<Steps> StepsOnDisk(const Load& load, uint64_t begin) {
  auto client = MakeClient(load);
  if (!client.ok()) return client.status();
  const auto jobs = AllJobs(client->get());
  if (!jobs.ok()) return jobs.status();
  std::vector<uint64_t> sequences;
  for (const uint64_t job : *jobs) {
    v1::ListTransitionsRequest request;
    request.set_job_id(job);
    request.set_page_size(kPageSize);
    const auto page = (*client)->ListTransitions(request);
    if (!page.ok()) return page.status();
    if (!page->next_page_token().empty()) return absl::InternalError("a job has too many steps");
    for (const v1::Transition& step : page->transitions()) {
      if (step.sequence() > begin) sequences.push_back(step.sequence());
    }
  }
  std::sort(sequences.begin(), sequences.end());
  Steps steps;
  for (const uint64_t sequence : sequences) steps.Add(sequence);
  return steps;
}

}  // namespace

absl::Status WatchChanges(const Load& load) {
  Watchers watchers;
  if (absl::Status status = Begin(load, /*reads=*/true, &watchers); !status.ok()) return status;
  AwaitEndOfInput();
  if (absl::Status status = AwaitAll(watchers); !status.ok()) return status;
  const auto expected = StepsOnDisk(load, watchers.all.front()->begin());
  if (!expected.ok()) return expected.status();
  const auto complete = std::count_if(watchers.all.begin(), watchers.all.end(),
                                      [&](auto& one) { return one->steps() == *expected; });
  fmt::print("{{\"complete\": {}, \"transitions\": {}}}\n", complete, expected->count);
  return absl::OkStatus();
}

absl::Status WatchWithoutReading(const Load& load) {
  Watchers watchers;
  if (absl::Status status = Begin(load, /*reads=*/false, &watchers); !status.ok()) return status;
  AwaitEndOfInput();
  fmt::print("{{}}\n");
  return absl::OkStatus();
}

}  // namespace muster::bench
