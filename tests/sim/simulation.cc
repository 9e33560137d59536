#include "tests/sim/simulation.h"

#include <algorithm>
#include <memory>

#include "tests/sim/agent.h"
#include "tests/sim/auditor.h"
#include "tests/sim/broker.h"
#include "tests/sim/client.h"
#include "tests/sim/cluster.h"
#include "tests/sim/operator.h"

namespace muster::sim {
namespace {

// Faults strike for this time, and everything must have ended within the bound after that. The
// bound is for the worst case, an hour by which a clock was set back; usually the quiet is a minute
// or two.
constexpr absl::Duration kFaults = absl::Minutes(6);
constexpr absl::Duration kSubmits = absl::Minutes(4);
constexpr absl::Duration kQuiet = absl::Hours(3);
constexpr absl::Duration kCheckInterval = absl::Seconds(10);

class Simulation {
 public:
  Simulation(uint64_t seed, Mutation mutation, bool wants_history)
      : world_(seed, mutation, wants_history),
        auditor_(&world_),
        broker_(&world_, &auditor_),
        clusters_(MakeClusters()),
        client_(&world_, &auditor_, &broker_, Names()),
        operator_(&world_, &auditor_, &broker_, Names()) {
    constexpr double kIntensities[] = {0, 0.3, 1, 1, 2, 3};
    world_.intensity = kIntensities[world_.random.Below(std::size(kIntensities))];
    world_.history.Note(world_.loop, "seed {}: {} clusters, faults x {}", seed, clusters_.size(),
                        world_.intensity);
    for (auto& cluster : clusters_) {
      agents_.push_back(std::make_unique<SimAgent>(&world_, &auditor_, &broker_, cluster.get()));
    }
  }

  void Run() {
    broker_.Start();
    for (auto& agent : agents_) agent->Start();
    client_.Start(10 + static_cast<int>(world_.random.Below(70)), kSubmits);
    operator_.Start(kSubmits);
    PlanFault();
    const absl::Time begin = world_.loop.now();
    const auto has_failed = [this] { return !auditor_.violation().empty(); };
    world_.loop.RunUntil(begin + kFaults, has_failed);
    if (!has_failed()) BeQuiet();
    virtual_time_ = world_.loop.now() - begin;
  }

  Verdict MakeVerdict(uint64_t seed) const {
    Verdict verdict;
    verdict.seed = seed;
    verdict.violation = auditor_.violation();
    verdict.history = world_.history.lines();
    verdict.counts = world_.counts;
    verdict.jobs = auditor_.jobs();
    verdict.virtual_time = virtual_time_;
    return verdict;
  }

 private:
  std::vector<std::unique_ptr<SimCluster>> MakeClusters() {
    std::vector<std::unique_ptr<SimCluster>> clusters;
    const size_t count = 1 + world_.random.Below(3);
    for (size_t i = 0; i < count; ++i) {
      SimCluster::Temper temper;
      temper.is_slurm = world_.random.Chance(0.6);
      temper.cluster.keeps_history = world_.random.Chance(0.5);
      temper.cluster.memory = world_.random.Between(absl::Seconds(5), absl::Seconds(60));
      temper.cluster.slots = 2 + static_cast<int>(world_.random.Below(5));
      clusters.push_back(std::make_unique<SimCluster>(
          &world_, &auditor_, std::string("cluster-") + static_cast<char>('a' + i), temper));
    }
    return clusters;
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& cluster : clusters_) names.push_back(cluster->name());
    return names;
  }

  // Plans faults that come by themselves; those at the steps of a process are drawn there.
  void PlanFault() {
    if (!world_.faults) return;
    const absl::Duration most = absl::Seconds(30) / std::max(0.1, world_.intensity);
    world_.loop.After(world_.random.Between(absl::ZeroDuration(), most), [this] {
      if (world_.faults && world_.intensity > 0) Strike();
      PlanFault();
    });
  }

  void Strike() {
    Random& random = world_.random;
    SimAgent& agent = *agents_[random.Below(agents_.size())];
    switch (random.Below(10)) {
      case 0:
        return broker_.Crash("broker dies at any time");
      case 1:
        return agent.Crash("agent dies at any time", random.Chance(0.3));
      case 2:
      case 3:
        return broker_.CutSomeLink();
      case 4: {
        const absl::Duration jump = random.Between(-absl::Hours(1), absl::Hours(1));
        world_.Count("clock jump");
        world_.history.Note(world_.loop, "broker: its clock jumps by {}",
                            absl::FormatDuration(jump));
        return broker_.JumpClock(jump);
      }
      case 5:
        return agent.Isolate(random.Between(absl::Seconds(1), absl::Seconds(120)));
      default:
        return clusters_[random.Below(clusters_.size())]->Misfortune();
    }
  }

  void BeQuiet() {
    world_.history.Note(world_.loop, "no more faults");
    world_.faults = false;
    const absl::Time end = world_.loop.now() + kQuiet;
    while (auditor_.violation().empty() && !IsSettled() && world_.loop.now() < end) {
      world_.loop.RunUntil(world_.loop.now() + kCheckInterval,
                           [this] { return !auditor_.violation().empty(); });
    }
    auditor_.CheckAfterQuiet(broker_.store(), LiveRuns(), HeldRuns());
    if (!client_.IsDone() || !operator_.IsDone())
      auditor_.Fail("progress", "a client still waits for an answer");
  }

  bool IsSettled() const {
    return client_.IsDone() && operator_.IsDone() && auditor_.AllEnded() && LiveRuns() == 0 &&
           HeldRuns() == 0;
  }
  size_t LiveRuns() const {
    size_t live = 0;
    for (const auto& cluster : clusters_) live += cluster->live();
    return live;
  }
  size_t HeldRuns() const {
    size_t held = 0;
    for (const auto& agent : agents_) held += agent->held();
    return held;
  }

  World world_;
  Auditor auditor_;
  SimBroker broker_;
  std::vector<std::unique_ptr<SimCluster>> clusters_;
  std::vector<std::unique_ptr<SimAgent>> agents_;
  SimClient client_;
  SimOperator operator_;
  absl::Duration virtual_time_;
};

}  // namespace

Verdict Simulate(uint64_t seed, Mutation mutation, bool wants_history) {
  // The seeds are far apart even if the given ones are near.
  Simulation simulation(Random(seed).Next(), mutation, wants_history);
  simulation.Run();
  return simulation.MakeVerdict(seed);
}

}  // namespace muster::sim
