// Random clusters, runs and ends, minute by minute; after each round, what it did is compared with
// what a model finds by trying everything.
#include <algorithm>
#include <random>
#include <tuple>

#include "agents/machines/scheduling/cluster_queue.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/unit/machines/scheduling/model.h"
#include "tests/unit/machines/scheduling/test_hosts.h"

namespace muster::machines {
namespace {

using absl::InfiniteFuture;
using absl::Minutes;

constexpr uint64_t kCases = 100'000;
// No run takes longer, whether it has a limit or not.
constexpr int kLongestMinutes = 8;
// A blocked run waits for the free passing to be over, then for the ends of those without a limit,
// then for that of the last one with a limit that passed.
const absl::Duration kLongestBlocked = kFreePassing + 2 * Minutes(kLongestMinutes);

struct SimRun {
  QueuedRun run;
  Allocation allocation = {};
  absl::Time ends = InfiniteFuture();   // when it really does
  absl::Time limit = InfiniteFuture();  // when it does at the latest, as the queue knows
  uint64_t start = 0;                   // in the order of starts
};

auto PlaceOf(const SimRun& run) { return std::tuple(-run.run.priority, run.run.order); }

class Case {
 public:
  explicit Case(uint64_t seed)
      : random_(seed), hosts_(AnyHosts()), model_(hosts_), queue_(hosts_) {}

  // Returns the fault that was found; empty if there is none.
  std::string Play() {
    const bool is_long = Below(8) == 0;  // long enough that a run could starve
    priorities_ = is_long ? 1 : 1 + Below(2);
    hosts_fail_ = !is_long && Below(4) == 0;
    arrivals_ = 1 + Below(3);
    const int minutes = is_long ? 60 : 12;
    for (int minute = 0; minute < minutes; ++minute) {
      EndRuns();
      ChangeHosts();
      for (int i = 0; i < arrivals_; ++i) Arrive();
      if (std::string wrong = PlayRound(); !wrong.empty()) {
        return fmt::format("minute {}: {}", minute, wrong);
      }
      if (std::string wrong = AskAhead(); !wrong.empty()) {
        return fmt::format("minute {}, one more: {}", minute, wrong);
      }
      now_ += Minutes(1);
    }
    return "";
  }

 private:
  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }

  std::vector<ClusterHost> AnyHosts() {
    std::vector<ClusterHost> hosts;
    const int count = 1 + Below(3);
    for (int i = 0; i < count; ++i) {
      std::vector<std::string> types;
      const int gpus = Below(4);
      for (int gpu = 0; gpu < gpus; ++gpu) types.push_back(Below(4) == 0 ? "a100" : "h100");
      hosts.push_back(Host(std::string(1, static_cast<char>('a' + i)),
                           static_cast<uint32_t>(1 + Below(6)), types, 4));
    }
    return hosts;
  }

  Request AnyRequest() {
    static constexpr uint32_t kMillis[] = {0, 0, 250, 500, 600, 1000, 1000, 2000, 3000};
    static constexpr const char* kTypes[] = {"", "", "h100", "a100"};
    Request request = {.nodes = Below(4) == 0 ? 2u : 1u,
                       .cores = static_cast<uint32_t>(Below(4)),
                       .memory_bytes = static_cast<uint64_t>(Below(3)),
                       .gpu_millis = kMillis[Below(9)]};
    if (request.gpu_millis > 0) request.gpu_type = kTypes[Below(4)];
    return request;
  }

  // Asks, before a run comes, whether it would start.
  std::string AskAhead() {
    if (waiting_.empty() || waiting_.size() >= 6 || Below(4) != 0) return "";
    const uint64_t order = next_;
    const size_t started = next_start_;
    const size_t waited = waiting_.size();
    const auto outlook = queue_.outlook();
    const Ledger ledger = queue_.ledger();
    const Occupants occupants = queue_.occupants();
    Arrive();
    const auto added = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const SimRun& run) { return run.run.order == order; });
    if (waiting_.size() == waited || added->run.held) return "";
    const absl::Duration wait = WaitOf(added->run, outlook, ledger, occupants, now_);
    if (std::string wrong = PlayRound(); !wrong.empty()) return wrong;
    const bool starts = std::none_of(waiting_.begin(), waiting_.end(),
                                     [&](const SimRun& run) { return run.run.order == order; });
    // Another one may have found a place that the round before did not leave it.
    if (next_start_ > started + (starts ? 1 : 0)) return "";
    if (starts == (wait == absl::ZeroDuration())) return "";
    return fmt::format("run {} was told {} and {}", order, absl::FormatDuration(wait),
                       starts ? "starts" : "does not start");
  }

  void Arrive() {
    if (waiting_.size() >= 6) return;
    const uint64_t order = next_++;
    SimRun run = {.run = {.run_key = std::to_string(order),
                          .priority = Below(priorities_),
                          .order = order,
                          .request = AnyRequest(),
                          .held = Below(16) == 0}};
    if (queue_.ledger().Refusal(run.run.request).has_value()) return;
    if (Below(2) == 0) run.run.time_limit = Minutes(1 + Below(kLongestMinutes));
    queue_.Push(run.run);
    waiting_.push_back(run);
    std::sort(waiting_.begin(), waiting_.end(),
              [](const SimRun& a, const SimRun& b) { return PlaceOf(a) < PlaceOf(b); });
  }

  void EndRuns() {
    for (size_t i = 0; i < running_.size();) {
      if (running_[i].ends > now_) {
        ++i;
        continue;
      }
      queue_.Release(running_[i].run.run_key);
      model_.GiveBack(running_[i].allocation);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void ChangeHosts() {
    if (!hosts_fail_ || Below(4) != 0) return;
    const auto host = static_cast<uint32_t>(Below(static_cast<int>(hosts_.size())));
    const bool up = Below(2) == 0;
    hosts_[host].state = up ? HostState::kUp : HostState::kCordoned;
    queue_.SetState(host, hosts_[host].state);
    model_.SetUp(host, up);
    blocked_key_.clear();  // its reservation may be another
  }

  bool CouldFit(const Request& request) const {
    Model free(hosts_);
    for (uint32_t host = 0; host < hosts_.size(); ++host) {
      free.SetUp(host, hosts_[host].state == HostState::kUp);
    }
    return free.Fits(request);
  }

  std::string PlayRound() {
    std::vector<SimRun> started;
    for (ReadyRun& ready : queue_.Round(now_)) {
      const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const SimRun& run) {
        return run.run.run_key == ready.run.run_key;
      });
      if (found == waiting_.end()) return "a run started that does not wait: " + ready.run.run_key;
      SimRun run = *found;
      waiting_.erase(found);
      if (run.run.held) return "a held run started: " + run.run.run_key;
      run.allocation = std::move(ready.allocation);
      run.limit = now_ + run.run.time_limit;
      run.ends = std::min(run.limit, now_ + Minutes(1 + Below(kLongestMinutes)));
      run.start = next_start_++;
      if (std::string wrong = model_.Take(run.run.request, run.allocation); !wrong.empty()) {
        return fmt::format("run {} has {}", run.run.run_key, wrong);
      }
      started.push_back(std::move(run));
    }
    const SimRun* blocked = FirstBlocked();
    std::vector<SimRun> passed;
    for (const SimRun& run : started) {
      const bool in_turn = blocked == nullptr || PlaceOf(run) < PlaceOf(*blocked);
      (in_turn ? running_ : passed).push_back(run);
    }
    std::string wrong = blocked == nullptr ? "" : CheckOrder(*blocked, passed);
    running_.insert(running_.end(), passed.begin(), passed.end());
    return wrong;
  }

  // The first run that should have started and did not; those before it cannot be on what is up.
  const SimRun* FirstBlocked() const {
    for (const SimRun& run : waiting_) {
      if (!run.run.held && CouldFit(run.run.request)) return &run;
    }
    return nullptr;
  }

  // `passed` are those behind the blocked run that started in this round.
  std::string CheckOrder(const SimRun& blocked, const std::vector<SimRun>& passed) {
    const std::string& key = blocked.run.run_key;
    for (const SimRun& run : passed) model_.GiveBack(run.allocation);
    const bool fitted = model_.Fits(blocked.run.request);
    const Foresight before = Foresee(blocked, {});
    for (const SimRun& run : passed) model_.Take(run.run.request, run.allocation);
    if (fitted) return fmt::format("run {} fits and does not start", key);
    if (!queue_.blocked().has_value() || queue_.blocked()->run.run_key != key)
      return fmt::format("run {} has no reservation", key);
    if (queue_.blocked()->start != before.time)
      return fmt::format("run {} has its reservation at another time than the model's", key);
    const Foresight after = Foresee(blocked, passed);
    if (after.time > before.time) return fmt::format("run {} is delayed by those behind it", key);
    if (std::string wrong = CheckBlocked(blocked, before.time); !wrong.empty()) return wrong;
    const bool is_free_passing = now_ < blocked_since_.at(key) + kFreePassing;
    if (!is_free_passing && after.endless > before.endless)
      return fmt::format("run {} must wait for one more run without a limit", key);
    return CheckNothingIdle(blocked, before.time, is_free_passing);
  }

  // Says when the run can start at the latest, and for how many runs without a limit it waits, in
  // the order in which they started.
  struct Foresight {
    absl::Time time;
    size_t endless = 0;
  };
  Foresight Foresee(const SimRun& blocked, const std::vector<SimRun>& passed) const {
    std::vector<const SimRun*> there;
    for (const SimRun& run : running_) there.push_back(&run);
    for (const SimRun& run : passed) there.push_back(&run);
    std::sort(there.begin(), there.end(), [](const SimRun* a, const SimRun* b) {
      return std::tuple(a->limit, a->start) < std::tuple(b->limit, b->start);
    });
    Model model = model_;
    Foresight foresight = {.time = now_};
    for (const SimRun* run : there) {
      if (model.Fits(blocked.run.request)) break;
      model.GiveBack(run->allocation);
      foresight.time = std::max(run->limit, now_);
      foresight.endless += run->limit == InfiniteFuture() ? 1 : 0;
    }
    return foresight;
  }

  std::string CheckBlocked(const SimRun& blocked, absl::Time time) {
    const std::string& key = blocked.run.run_key;
    if (key == blocked_key_ && time > blocked_time_)
      return fmt::format("the reservation of run {} has moved", key);
    blocked_key_ = key;
    blocked_time_ = priorities_ == 1 ? time : InfiniteFuture();
    const absl::Time since = blocked_since_.try_emplace(key, now_).first->second;
    const bool starves = priorities_ == 1 && !hosts_fail_ && now_ > since + kLongestBlocked;
    return starves ? fmt::format("run {} starves", key) : "";
  }

  // Nobody waits who fits and would be gone in time.
  std::string CheckNothingIdle(const SimRun& blocked, absl::Time time, bool is_free_passing) const {
    for (const SimRun& run : waiting_) {
      if (run.run.held || PlaceOf(run) <= PlaceOf(blocked)) continue;
      const absl::Time end = now_ + run.run.time_limit;
      const bool may =
          end != InfiniteFuture() ? end <= time : time == InfiniteFuture() && is_free_passing;
      if (may && model_.Fits(run.run.request))
        return fmt::format("run {} could pass and does not", run.run.run_key);
    }
    return "";
  }

  std::mt19937_64 random_;
  int priorities_ = 1;
  bool hosts_fail_ = false;
  int arrivals_ = 1;  // in a minute
  std::vector<ClusterHost> hosts_;
  Model model_;
  ClusterQueue queue_;
  absl::Time now_ = absl::UnixEpoch();
  uint64_t next_ = 1;
  uint64_t next_start_ = 1;
  std::vector<SimRun> waiting_;  // in the order of the queue
  std::vector<SimRun> running_;
  // The first blocked run of the last round, and its reservation.
  std::string blocked_key_;
  absl::Time blocked_time_ = InfiniteFuture();
  std::map<std::string, absl::Time> blocked_since_;
};

TEST(ClusterQueueProperty, NothingIsOversubscribedNobodyStarvesAndNoReservationIsDelayed) {
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    const std::string wrong = Case(seed).Play();
    ASSERT_EQ(wrong, "") << "case " << seed;
  }
}

}  // namespace
}  // namespace muster::machines
