// Some things hold in every small world: random clusters, jobs and times.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "tests/unit/core/small_world.h"

namespace muster::core {
namespace {

// MUSTER_SMALL_WORLDS=100000 looks at so many.
uint64_t Worlds() {
  constexpr uint64_t kWorlds = 500;
  const char* const wanted = std::getenv("MUSTER_SMALL_WORLDS");
  uint64_t count = 0;
  return wanted != nullptr && absl::SimpleAtoi(wanted, &count) ? count : kWorlds;
}

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  std::vector<WorldCluster> Clusters() {
    std::vector<WorldCluster> clusters;
    const uint64_t count = Below(2) + 1;
    for (uint64_t i = 0; i < count; ++i) {
      clusters.push_back({.name = std::string(1, static_cast<char>('a' + i)),
                          .nodes = static_cast<uint32_t>(Below(2) == 0 ? 1 : 2 + Below(2)),
                          .cpus = 4 + Below(5)});
    }
    return clusters;
  }

  std::vector<WorldJob> Jobs(const std::vector<WorldCluster>& clusters) {
    const WorldCluster& widest = clusters[Below(clusters.size())];
    std::vector<WorldJob> jobs;
    const uint64_t count = 10 + Below(40);
    for (uint64_t i = 0; i < count; ++i) {
      WorldJob job;
      job.arrival = absl::Seconds(static_cast<int64_t>(Below(1200)));
      const bool is_large = Below(6) == 0;
      job.cpus = is_large ? widest.cpus : 1 + Below(3);
      job.nodes = is_large ? widest.nodes : 1;
      job.run_time = absl::Seconds(static_cast<int64_t>(10 + Below(600)));
      if (Below(4) != 0) job.limit = job.run_time + absl::Seconds(static_cast<int64_t>(Below(200)));
      if (Below(8) == 0) job.priority = 5;
      job.is_preemptible = Below(2) == 0;
      jobs.push_back(job);
    }
    return jobs;
  }

 private:
  uint64_t Below(uint64_t end) {
    return std::uniform_int_distribution<uint64_t>(0, end - 1)(random_);
  }

  std::mt19937_64 random_;
};

Options QuickOptions(uint64_t seed) {
  Options options;
  options.keep_room_after = absl::Minutes(2);
  options.sent_ahead_per_pool = 1 + static_cast<uint32_t>(seed % 3);
  return options;
}

TEST(SmallWorlds, NobodyIsPlacedTwiceOrDelayedByThoseWhoPass) {
  uint64_t kept = 0, preempted = 0;
  const uint64_t worlds = Worlds();
  for (uint64_t seed = 1; seed <= worlds; ++seed) {
    Maker maker(seed);
    const auto clusters = maker.Clusters();
    SmallFleet world(QuickOptions(seed), clusters, maker.Jobs(clusters));
    const std::string wrong = world.RunAll(absl::Hours(12));
    std::string history;
    if (!wrong.empty()) {
      for (const std::string& line : world.history()) history += line + "\n";
    }
    ASSERT_EQ(wrong, "") << "world " << seed << "\n" << history;
    kept += static_cast<uint64_t>(world.kept());
    preempted += static_cast<uint64_t>(world.preempted());
  }
  EXPECT_GT(kept, worlds) << "room is hardly ever kept";
  EXPECT_GT(preempted, worlds / 20) << "hardly anything is preempted";
}

TEST(SmallWorlds, TheSameComesOfTheSame) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<std::string> first;
    for (int again = 0; again < 2; ++again) {
      Maker maker(seed);
      const auto clusters = maker.Clusters();
      SmallFleet world(QuickOptions(seed), clusters, maker.Jobs(clusters));
      ASSERT_EQ(world.RunAll(absl::Hours(12)), "");
      if (again == 0) first = world.history();
      EXPECT_EQ(world.history(), first);
    }
  }
}

// A stream of small jobs without time limits never ends; the large one starts all the same.
TEST(SmallWorlds, ALargeJobStartsInAStreamOfSmallOnes) {
  std::vector<WorldJob> jobs;
  for (int i = 0; i < 600; ++i) {
    jobs.push_back({.arrival = absl::Seconds(10 * i), .cpus = 2, .run_time = absl::Seconds(45)});
  }
  jobs.push_back({.arrival = absl::Seconds(301), .cpus = 8, .run_time = absl::Minutes(1)});
  SmallFleet world(QuickOptions(1), {{.name = "a", .nodes = 1, .cpus = 8}}, jobs);
  ASSERT_EQ(world.RunAll(absl::Hours(12)), "");
  EXPECT_GE(world.kept(), 1);
  EXPECT_LT(world.WaitOfLargest(), absl::Minutes(5));
}

}  // namespace
}  // namespace muster::core
