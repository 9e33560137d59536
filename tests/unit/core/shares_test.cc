// Tests fair shares: the order of service against a chooser that compares everything with
// everything, and what projects get in the long run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "contract/project_shares.h"
#include "contract/run_key.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

// ---- a chooser without any index: it keeps every run that there was

struct ModelRun {
  uint64_t job = 0;
  double start = 0;
  double end = std::numeric_limits<double>::infinity();
};
struct ModelJob {
  std::string project, user;
  int32_t priority = 0;
  uint64_t gpu_millis = 0;
  std::string gpu_type;
  double cores = 1, gpus = 0;
  std::string cluster;  // empty: it waits
};

class Model {
 public:
  Model(contract::ProjectShares shares, double half_life)
      : shares_(std::move(shares)), half_life_(half_life) {}

  contract::ProjectShare ShareOf(const std::string& project) const {
    const auto found = shares_.projects.find(project);
    return found == shares_.projects.end() ? contract::ProjectShare() : found->second;
  }
  std::string RootOf(const std::string& project) const {
    const std::string parent = ShareOf(project).parent;
    return parent.empty() ? project : parent;
  }

  // The use of all runs that `counts` says are meant.
  template <typename F>
  double Use(double now, F counts) const {
    const double ahead = std::min(3600.0, half_life_ / 10);
    double cores = 0, gpus = 0;
    for (const ModelRun& run : runs_) {
      const ModelJob& job = jobs_.at(run.job);
      if (!counts(job)) continue;
      const auto past = [&](double time) { return std::exp2((time - now) / half_life_); };
      double use =
          half_life_ / std::numbers::ln2 * (past(std::min(run.end, now)) - past(run.start));
      if (run.end > now) use += ahead;
      cores += job.cores * use;
      gpus += job.gpus * use;
    }
    return std::max(cores / cores_, gpus / gpus_);
  }

  struct Key {
    int32_t priority;
    double family, project, user;
    uint64_t job;
  };
  Key KeyOf(uint64_t id, double now) const {
    const ModelJob& job = jobs_.at(id);
    const std::string root = RootOf(job.project);
    const double within = root == job.project ? 1 : ShareOf(job.project).weight;
    return {job.priority,
            Use(now, [&](const ModelJob& one) { return RootOf(one.project) == root; }) /
                ShareOf(root).weight,
            Use(now, [&](const ModelJob& one) { return one.project == job.project; }) / within,
            Use(now,
                [&](const ModelJob& one) {
                  return one.project == job.project && one.user == job.user;
                }),
            id};
  }
  // True if `a` is served before `b` beyond any doubt that rounding leaves.
  static bool IsBefore(const Key& a, const Key& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    const std::pair<double, double> levels[] = {
        {a.family, b.family}, {a.project, b.project}, {a.user, b.user}};
    for (size_t i = 0; i < 3; ++i) {
      const auto [left, right] = levels[i];
      if (left == right) continue;
      if (std::abs(left - right) < 1e-9 * std::max(left, right)) return false;
      return left < right;
    }
    return a.job < b.job;
  }

  // As long as a project is not served, the priority of its first job that may go counts, so that
  // the keys of single jobs give the same order.
  bool MayStart(const ModelJob& job) const {
    const contract::ProjectShare share = ShareOf(job.project);
    return Allows(share.quota, job, "") && Allows(share.user_quota, job, job.user);
  }
  bool Allows(const contract::Quota& quota, const ModelJob& job, const std::string& user) const {
    uint64_t active = 0;
    std::map<std::string, uint64_t> gpus;
    for (const auto& [id, one] : jobs_) {
      const bool counts =
          !one.cluster.empty() && one.project == job.project && (user.empty() || one.user == user);
      if (!counts) continue;
      ++active;
      gpus[""] += one.gpu_millis;
      if (!one.gpu_type.empty()) gpus[one.gpu_type] += one.gpu_millis;
    }
    if (quota.max_active_runs && active + 1 > *quota.max_active_runs) return false;
    for (const auto& [type, most] : quota.max_gpu_millis) {
      const bool is_meant = job.gpu_millis > 0 && (type.empty() || type == job.gpu_type);
      if (is_meant && gpus[type] + job.gpu_millis > most) return false;
    }
    return true;
  }

  std::map<uint64_t, ModelJob> jobs_;
  std::vector<ModelRun> runs_;
  double cores_ = 1, gpus_ = 1;

 private:
  const contract::ProjectShares shares_;
  const double half_life_;
};

// ---- a core without a store around it

class World {
 public:
  World(contract::ProjectShares shares, absl::Duration half_life) {
    Options options;
    options.half_life = half_life;
    options.heartbeat_interval = absl::Hours(24 * 365);
    Restored restored;
    restored.instance = "k7m2";
    restored.shares = std::make_shared<const contract::ProjectShares>(std::move(shares));
    core_ = std::make_unique<Core>(options, std::move(restored));
  }

  // Lists each assignment, in order: job, cluster.
  using Assigned = std::vector<std::pair<uint64_t, std::string>>;
  Assigned Do(Input input) {
    Output out;
    core_->Handle(std::move(input), now_, &out);
    while (core_->PlaceJobs(now_, &out)) {
    }
    Assigned assigned;
    for (const Change& change : out.changes) {
      const auto* step = std::get_if<AppendTransition>(&change);
      if (step == nullptr || step->transition.run_state() != v1::RUN_STATE_ASSIGNED) continue;
      std::string cluster = step->transition.evidence().detail();
      assigned.emplace_back(step->job, std::move(cluster));
    }
    return assigned;
  }
  Assigned Pass(absl::Duration time) {
    now_ += time;
    return Do(Tick());
  }
  void Connect(const std::string& name, uint32_t max_active_runs, uint32_t nodes) {
    agent::v1::AgentHello hello = Hello(name);
    hello.set_max_active_runs(max_active_runs);
    *hello.mutable_inventory()->mutable_pools(0) =
        PoolOf("default", {.count = nodes, .cpus = 8, .gpus = {{"h100", 4}, {"a100", 4}}});
    Do(AgentConnected{++sessions_, hello});
  }
  Assigned End(SessionId session, uint64_t job) {
    AgentReported report;
    report.session = session;
    *report.events.add_events() = LogsComplete(
        ++events_[session], contract::RunKey{"k7m2", job, 1}.ToString(), v1::RUN_STATE_FAILED);
    return Do(std::move(report));
  }
  Assigned Submit(const v1::JobSpec& spec, const std::string& user, uint64_t* id) {
    core::Submit in;
    in.items.push_back({.spec = std::make_shared<v1::JobSpec>(spec), .request_id = ""});
    in.user = user;
    *id = ++last_job_;
    return Do(std::move(in));
  }
  double seconds() const { return absl::ToDoubleSeconds(now_ - absl::UnixEpoch()); }
  absl::Status Check() const { return core_->CheckInvariants(); }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1'750'000'000);
  std::unique_ptr<Core> core_;
  SessionId sessions_ = 0;
  std::map<SessionId, uint64_t> events_;
  uint64_t last_job_ = 0;
};

contract::Quota RandomQuota(std::mt19937_64& random) {
  contract::Quota quota;
  if (random() % 3 == 0) quota.max_active_runs = random() % 4;
  if (random() % 3 == 0) quota.max_gpu_millis["h100"] = 1000 * (2 + random() % 4);
  if (random() % 3 == 0) quota.max_gpu_millis[""] = 1000 * (2 + random() % 4);
  return quota;
}

contract::ProjectShares RandomShares(std::mt19937_64& random) {
  contract::ProjectShares shares;
  shares.are_on = true;
  for (const std::string name : {"p0", "p1", "p2", "p3"}) {
    contract::ProjectShare& share = shares.projects[name];
    share.weight = 1 + random() % 4;
    if (name != "p0" && random() % 3 == 0) share.parent = "p0";
    if (random() % 2 == 0) share.quota = RandomQuota(random);
    if (random() % 2 == 0) share.user_quota = RandomQuota(random);
  }
  return shares;
}

// Runs one world of a few jobs: each assignment must be one that the chooser would make, and what
// it leaves must be what nobody may have.
class SmallWorld {
 public:
  explicit SmallWorld(uint64_t seed)
      : random_(seed),
        shares_(RandomShares(random_)),
        model_(shares_, absl::ToDoubleSeconds(kHalfLife)),
        world_(shares_, kHalfLife) {
    room_ = {{"a", 1 + random_() % 3}, {"b", random_() % 3}};
    world_.Connect("a", room_["a"], 2);
    world_.Connect("b", room_["b"], 2);
    model_.cores_ = 2 * 2 * 8;
    model_.gpus_ = 2 * 2 * 8;
  }

  std::string Run() {
    for (int step = 0; step < 14 && wrong_.empty(); ++step) {
      Judge(world_.Pass(absl::Seconds(60 + random_() % 7200)));
      const auto active = Active();
      if (!active.empty() && random_() % 3 == 0) {
        End(active[random_() % active.size()]);
      } else {
        SubmitOne();
      }
      if (wrong_.empty() && !world_.Check().ok()) wrong_ = world_.Check().ToString();
    }
    return wrong_;
  }

 private:
  static constexpr absl::Duration kHalfLife = absl::Hours(6);

  std::vector<uint64_t> Active() const {
    std::vector<uint64_t> active;
    for (const auto& [id, job] : model_.jobs_) {
      if (!job.cluster.empty() && job.cluster != "ended") active.push_back(id);
    }
    return active;
  }
  void SubmitOne() {
    ModelJob job;
    job.project = fmt::format("p{}", random_() % 4);
    job.user = random_() % 2 == 0 ? "ada" : "bob";
    job.priority = random_() % 4 == 0 ? 1 : 0;
    v1::JobSpec spec = Spec();
    if (random_() % 2 == 0) {
      job.gpu_type = random_() % 2 == 0 ? "h100" : "a100";
      job.gpus = 1 + random_() % 2;
      job.gpu_millis = 1000 * static_cast<uint64_t>(job.gpus);
      spec = SpecWithGpus(job.gpu_type, static_cast<int>(job.gpus));
    }
    job.cores = 1 + random_() % 3;
    spec.mutable_resources()->set_cpu_millis(1000 * static_cast<uint64_t>(job.cores));
    spec.set_project(job.project);
    spec.set_priority(job.priority);
    uint64_t id = 0;
    const World::Assigned assigned = world_.Submit(spec, job.user, &id);
    model_.jobs_[id] = job;
    Judge(assigned);
  }
  void End(uint64_t id) {
    ModelJob& job = model_.jobs_[id];
    const SessionId session = job.cluster == "a" ? 1 : 2;
    const World::Assigned assigned = world_.End(session, id);
    ++room_[job.cluster];
    job.cluster.clear();
    ended_.insert(id);
    for (ModelRun& run : model_.runs_) {
      if (run.job == id) run.end = world_.seconds();
    }
    Judge(assigned);
  }
  bool MayStart(uint64_t id, const ModelJob& job) const {
    return job.cluster.empty() && !ended_.contains(id) && model_.MayStart(job);
  }
  void Judge(const World::Assigned& assigned) {
    const double now = world_.seconds();
    for (const auto& [id, evidence] : assigned) {
      const std::string cluster = evidence.ends_with(" a") ? "a" : "b";
      ModelJob& job = model_.jobs_.at(id);
      if (!MayStart(id, job)) wrong_ = fmt::format("job {} exceeds a quota", id);
      if (room_[cluster] == 0) wrong_ = fmt::format("job {} goes where no room is", id);
      const Model::Key key = model_.KeyOf(id, now);
      for (const auto& [other, one] : model_.jobs_) {
        if (other != id && MayStart(other, one) && Model::IsBefore(model_.KeyOf(other, now), key))
          wrong_ = fmt::format("job {} is served before job {}", id, other);
      }
      job.cluster = cluster;
      --room_[cluster];
      model_.runs_.push_back({id, now});
    }
    if (room_["a"] + room_["b"] == 0) return;
    for (const auto& [id, job] : model_.jobs_) {
      if (MayStart(id, job))
        wrong_ = fmt::format("job {} waits, and nothing speaks against it", id);
    }
  }

  std::mt19937_64 random_;
  const contract::ProjectShares shares_;
  Model model_;
  World world_;
  std::map<std::string, uint64_t> room_;
  std::set<uint64_t> ended_;
  std::string wrong_;
};

TEST(SharesTest, TenThousandSmallWorldsAreServedAsByAChooserThatComparesEverything) {
  for (uint64_t seed = 0; seed < 10'000; ++seed) {
    const std::string wrong = SmallWorld(seed).Run();
    ASSERT_EQ(wrong, "") << "seed " << seed;
  }
}

// ---- the long run

// A cluster on which each project always has jobs that wait.
class LongRun {
 public:
  explicit LongRun(contract::ProjectShares shares)
      : world_(std::move(shares), absl::Hours(24 * 7)) {
    world_.Connect("a", 12, 4);
  }

  // Returns the core seconds of each project, after `time`.
  std::map<std::string, double> Run(const std::vector<std::string>& projects, double time) {
    for (const std::string& project : projects) {
      for (int i = 0; i < 20; ++i) Submit(project);
    }
    const double end = world_.seconds() + time;
    while (world_.seconds() < end) {
      const auto [at, id] = *ends_.begin();
      ends_.erase(ends_.begin());
      Take(world_.Pass(absl::Seconds(std::max(0.0, at - world_.seconds()))));
      const std::string project = project_.at(id);
      Take(world_.End(1, id));
      Submit(project);
    }
    return used_;
  }

 private:
  void Submit(const std::string& project) {
    v1::JobSpec spec = Spec();
    spec.set_project(project);
    // Projects differ in the sizes of their jobs.
    cores_of_next_ = 1 + random_() % (project == "p0" ? 2 : 4);
    spec.mutable_resources()->set_cpu_millis(1000 * cores_of_next_);
    uint64_t id = 0;
    const World::Assigned assigned = world_.Submit(spec, "ada", &id);
    project_[id] = project;
    cores_[id] = cores_of_next_;
    Take(assigned);
  }
  void Take(const World::Assigned& assigned) {
    for (const auto& [id, cluster] : assigned) {
      const double seconds = static_cast<double>(600 + random_() % 5400);
      ends_.emplace(world_.seconds() + seconds, id);
      used_[project_.at(id)] += seconds * static_cast<double>(cores_.at(id));
    }
  }

  std::mt19937_64 random_{7};
  World world_;
  uint64_t cores_of_next_ = 0;
  std::map<uint64_t, std::string> project_;
  std::map<uint64_t, uint64_t> cores_;
  std::set<std::pair<double, uint64_t>> ends_;
  std::map<std::string, double> used_;
};

constexpr double kThirtyDays = 30 * 24 * 3600.0;

TEST(SharesTest, InTheLongRunProjectsGetWhatTheirWeightsSayWithinTwoPercent) {
  contract::ProjectShares shares;
  shares.are_on = true;
  shares.projects["p0"].weight = 3;
  LongRun run(shares);
  const auto used = run.Run({"p0", "p1"}, kThirtyDays);
  const double all = used.at("p0") + used.at("p1");
  EXPECT_NEAR(used.at("p0") / all, 0.75, 0.02);
  EXPECT_NEAR(used.at("p1") / all, 0.25, 0.02);
}

TEST(SharesTest, ChildrenDivideTheShareOfTheirParent) {
  contract::ProjectShares shares;
  shares.are_on = true;
  shares.projects["p1"].weight = 3;
  shares.projects["p1"].parent = "lab";
  shares.projects["p2"].parent = "lab";
  LongRun run(shares);
  const auto used = run.Run({"p0", "p1", "p2"}, kThirtyDays);
  const double all = used.at("p0") + used.at("p1") + used.at("p2");
  EXPECT_NEAR(used.at("p0") / all, 0.5, 0.02);
  EXPECT_NEAR(used.at("p1") / all, 0.375, 0.02);
  EXPECT_NEAR(used.at("p2") / all, 0.125, 0.02);
}

}  // namespace
}  // namespace muster::core
