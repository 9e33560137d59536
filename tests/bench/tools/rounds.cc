// Rounds of the machines' queue, without anything around it.
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "agents/machines/scheduling/cluster_queue.h"
#include "tests/bench/tools/processor_time.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {
namespace {

using machines::ClusterQueue;
using machines::QueuedRun;

constexpr int kHosts = 100;
constexpr uint32_t kCores = 128;
constexpr uint32_t kGpus = 8;
constexpr uint64_t kGib = uint64_t{1} << 30;
// Enough rounds that each of them meets another cluster.
constexpr int kRounds = 200;

std::vector<machines::ClusterHost> Hosts() {
  std::vector<machines::ClusterHost> hosts;
  for (int i = 0; i < kHosts; ++i) {
    machines::ClusterHost host = {.name = fmt::format("host{}", i),
                                  .capacity = {.cores = kCores, .memory_bytes = 1024 * kGib}};
    for (uint32_t gpu = 0; gpu < kGpus; ++gpu) {
      host.capacity.gpus.push_back({.index = gpu, .type = "h100", .name = std::to_string(gpu)});
    }
    hosts.push_back(std::move(host));
  }
  return hosts;
}

// Runs as people ask for them: a few sizes, a few time limits, some without. `distinct`: no two ask
// for the same.
QueuedRun AnyRun(uint64_t number, bool distinct, std::mt19937_64* random) {
  static constexpr uint32_t kMillis[] = {0, 500, 1000, 1000, 2000, 4000, 8000, 8000};
  static constexpr int kHours[] = {1, 2, 4, 8, 12, 24, 48};
  const auto below = [&](uint64_t bound) { return (*random)() % bound; };
  QueuedRun run = {.run_key = fmt::format("bench-{}-1", number),
                   .priority = static_cast<int32_t>(below(3)),
                   .order = number};
  run.request.gpu_millis = kMillis[below(8)];
  run.request.gpu_type = below(2) == 0 ? "" : "h100";
  run.request.nodes = run.request.gpu_millis == 8000 && below(2) == 0 ? 4 : 1;
  run.request.cores = static_cast<uint32_t>(1 << below(5));
  run.request.memory_bytes = (uint64_t{4} << below(5)) * kGib + (distinct ? number : 0);
  if (below(4) > 0) run.time_limit = absl::Hours(kHours[below(7)]);
  return run;
}

struct Times {
  double fill_ms = 0;
  double slowest_ms = 0;  // of the rounds after the first
  double each_ms = 0;     // to look for a place for each run of the queue
};

// The first round fills the cluster. Then one run ends and another comes before each round.
Times MeasureRounds(uint64_t jobs, bool distinct) {
  std::mt19937_64 random(1);
  ClusterQueue queue(Hosts());
  std::vector<QueuedRun> runs;
  for (uint64_t number = 1; number <= jobs; ++number) {
    runs.push_back(AnyRun(number, distinct, &random));
    queue.Push(runs.back());
  }
  std::vector<std::string> running;
  absl::Time now = absl::UnixEpoch();
  Times times;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<machines::ReadyRun> ready;
    const double ms = MillisecondsOf([&] { ready = queue.Round(now); });
    (round == 0 ? times.fill_ms : times.slowest_ms) = std::max(times.slowest_ms, ms);
    for (machines::ReadyRun& started : ready) running.push_back(started.run.run_key);
    std::swap(running[random() % running.size()], running.back());
    queue.Release(running.back());
    running.pop_back();
    queue.Push(AnyRun(jobs + 1 + static_cast<uint64_t>(round), distinct, &random));
    now += absl::Minutes(1);
  }
  size_t places = 0;
  times.each_ms = MillisecondsOf([&] {
    for (const QueuedRun& run : runs) places += queue.ledger().room().Fits(run.request) ? 1 : 0;
  });
  // The number is printed so that no compiler leaves the work out.
  fmt::print(stderr, "{} of {} runs would fit now\n", places, runs.size());
  return times;
}

}  // namespace

absl::Status PlanRounds(const Load& load) {
  const Times usual = MeasureRounds(load.jobs, false);
  const Times distinct = MeasureRounds(load.jobs, true);
  fmt::print(
      "{{\"fill_ms\": {:.3f}, \"usual_ms\": {:.3f}, \"usual_each_ms\": {:.3f}, \"distinct_ms\": "
      "{:.3f}, "
      "\"distinct_each_ms\": {:.3f}}}\n",
      usual.fill_ms, usual.slowest_ms, usual.each_ms, distinct.slowest_ms, distinct.each_ms);
  return absl::OkStatus();
}

}  // namespace muster::bench
