#include "tests/sim/agent.h"

#include <utility>

#include "agents/core/journal_content.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::sim {
namespace {

constexpr absl::Duration kTickInterval = absl::Seconds(1);
constexpr absl::Duration kObserveInterval = absl::Seconds(3);
constexpr absl::Duration kLookupGrace = absl::Seconds(30);  // more than kLongestFlight

agents::Options OptionsFor(const World& world, const SimCluster& cluster) {
  agents::Options options;
  options.cluster = cluster.name();
  options.kind = cluster.temper().is_slurm ? v1::CLUSTER_KIND_SLURM : v1::CLUSTER_KIND_MACHINES;
  options.fence_delay =
      world.Has(Mutation::kEarlyFence) ? absl::Milliseconds(1) : SimLeases::FenceDelay();
  options.max_active_runs = 6;
  options.asks_usage = cluster.temper().is_slurm;
  options.lookup_grace = world.Has(Mutation::kNoLookupGrace) ? absl::ZeroDuration() : kLookupGrace;
  options.max_launches_in_flight = 1;  // so that runs wait for their launch in the journal
  options.max_unacked_events = 4;      // a window that closes is a path of its own
  return options;
}

}  // namespace

SimAgent::SimAgent(World* world, Auditor* auditor, SimBroker* broker, SimCluster* cluster)
    : world_(*world), auditor_(*auditor), broker_(*broker), cluster_(*cluster) {
  NewJournal();
}

void SimAgent::NewJournal() {
  journal_ = {};
  journal_.meta.journal_id = fmt::format("{:016x}", world_.random.Next());
}

// ---- the process

void SimAgent::Start() {
  core_ = std::make_unique<agents::AgentCore>(OptionsFor(world_, cluster_), journal_);
  cluster_.Restart(core_->AllRuns());
  world_.history.Note(world_.loop, "agent {}: starts with {} runs", cluster_.name(), held());
  for (const agents::JournalRun& run : journal_.runs) {
    if (run.state < v1::RUN_STATE_PENDING) auditor_.TakenUp(run.assignment->run_key());
  }
  Tick();
  if (!is_up()) return;
  Later(world_.random.Between(absl::ZeroDuration(), kObserveInterval), [this] { Observe(); });
  Dial();
}

void SimAgent::Crash(std::string_view why, bool loses_journal) {
  if (!is_up()) return;
  world_.Count(why);
  if (loses_journal) world_.Count("journal lost");
  world_.history.Note(world_.loop, "{} ({}){}", why, cluster_.name(),
                      loses_journal ? ", and its journal with it" : "");
  ++process_;
  core_.reset();
  HangUp();
  if (loses_journal) NewJournal();
  if (world_.Strikes(0.2)) {
    clock_offset_ = world_.random.Between(-absl::Hours(1), absl::Hours(1));
  }
  world_.loop.After(world_.random.Skewed(absl::Milliseconds(100), absl::Seconds(40)),
                    [this] { Start(); });
}

void SimAgent::Isolate(absl::Duration time) {
  world_.Count("agent isolated");
  world_.history.Note(world_.loop, "network: {} cannot reach the broker for {}", cluster_.name(),
                      absl::FormatDuration(time));
  isolated_until_ = world_.loop.now() + time;
  if (link_ != nullptr) link_->Cut();
}

void SimAgent::Later(absl::Duration delay, std::function<void()> action) {
  world_.loop.After(delay, [this, process = process_, action = std::move(action)] {
    if (process == process_ && is_up()) action();
  });
}

void SimAgent::Tick() {
  Handle(agents::Tick{});
  if (is_up()) Later(kTickInterval, [this] { Tick(); });
}

void SimAgent::Handle(agents::Input input) {
  agents::Output out;
  core_->Handle(std::move(input), now(), now(), &out);
  if (auto status = core_->CheckInvariants(); !status.ok()) {
    auditor_.Fail("agent's own check", std::string(ToStd(status.message())));
  }
  const bool acts_first = world_.Has(Mutation::kActBeforeJournal);
  if (acts_first) CarryOut(std::exchange(out.effects, {}));
  if (is_up() && Commit(out)) CarryOut(std::move(out.effects));
}

bool SimAgent::Commit(const agents::Output& out) {
  if (out.changes.empty()) return true;
  if (world_.Strikes(0.0015)) {
    Crash("agent dies before a commit", false);
    return false;
  }
  agents::ApplyToContent(out.changes, &journal_);
  if (world_.Strikes(0.0015)) {
    Crash("agent dies after a commit", false);
    return false;
  }
  return true;
}

void SimAgent::CarryOut(std::vector<agents::Effect> effects) {
  for (agents::Effect& effect : effects) {
    if (world_.Strikes(0.0005)) return Crash("agent dies between effects", false);
    std::visit([this](auto& typed) { Do(typed); }, effect);
    if (!is_up()) return;
  }
}

// ---- the cluster

template <typename Outcome>
std::function<void(Outcome)> SimAgent::Answer(std::function<void(Outcome)> handle) {
  return [this, process = process_, handle = std::move(handle)](Outcome outcome) {
    if (process == process_ && is_up()) handle(std::move(outcome));
  };
}

void SimAgent::Do(agents::DoLaunch& effect) {
  const std::string key = effect.run.run_key;
  world_.history.Note(world_.loop, "agent {}: launches {}", cluster_.name(), key);
  auditor_.Launching(key);
  cluster_.Launch(*effect.run.assignment,
                  Answer<agents::LaunchOutcome>([this, key](agents::LaunchOutcome outcome) {
                    Handle(agents::Launched{key, std::move(outcome)});
                  }));
}

void SimAgent::Do(agents::DoLookup& effect) {
  const std::string key = effect.run.run_key;
  cluster_.Lookup(effect.run,
                  Answer<agents::LookupOutcome>([this, key](agents::LookupOutcome outcome) {
                    Handle(agents::LookedUp{key, std::move(outcome)});
                  }));
}

void SimAgent::Do(agents::DoFence& effect) {
  const std::string key = effect.run.run_key;
  cluster_.Fence(effect.run,
                 Answer<agents::FenceOutcome>([this, key](agents::FenceOutcome outcome) {
                   Handle(agents::Fenced{key, std::move(outcome)});
                 }));
}

void SimAgent::Do(agents::DoCancel& effect) {
  const std::string key = effect.run.run_key;
  cluster_.Cancel(effect.run, Answer<absl::Status>([this, key](absl::Status status) {
                    Handle(agents::CancelAsked{key, std::move(status)});
                  }));
}

void SimAgent::Do(agents::DoHold& effect) {
  cluster_.SetHeld(effect.run, effect.held,
                   Answer<absl::Status>(
                       [this, key = effect.run.run_key, held = effect.held](absl::Status status) {
                         Handle(agents::HoldAsked{key, held, std::move(status)});
                       }));
}

void SimAgent::Do(agents::DoForget& effect) {
  world_.history.Note(world_.loop, "agent {}: lets go of {}", cluster_.name(), effect.run.run_key);
  cluster_.Forget(effect.run);
  Later(world_.random.Skewed(absl::Milliseconds(10), absl::Seconds(10)),
        [this, key = effect.run.run_key] { Handle(agents::Forgotten{key}); });
}

void SimAgent::Do(agents::DoReadUsage& effect) {
  Later(world_.random.Skewed(absl::Milliseconds(10), absl::Seconds(10)),
        [this, runs = std::move(effect.runs)] {
          agents::UsageRead read{agents::UsageByRun()};
          if (world_.Strikes(0.2)) {
            world_.Count("accounting away");
            read.usage = absl::UnavailableError("slurmdbd is away");
          } else {
            for (const agents::RunHandle& run : runs) {
              if (!world_.Strikes(0.3)) read.usage->emplace(run.run_key, TrueUsage(run.run_key));
            }
          }
          Handle(std::move(read));
        });
}

void SimAgent::Do(agents::ShipLogs& effect) {
  if (!effect.ended) return;
  Later(world_.random.Skewed(absl::Milliseconds(10), absl::Seconds(10)),
        [this, key = effect.run.run_key] { Handle(agents::LogsShipped{key}); });
}

void SimAgent::Observe() {
  auto runs = core_->RunsToObserve();
  if (!runs.empty()) {
    cluster_.Observe(
        std::move(runs),
        Answer<agents::ObserveOutcome>([this, began = now()](agents::ObserveOutcome outcome) {
          Handle(agents::Observed{.outcome = std::move(outcome), .began = began});
        }));
  }
  Later(kObserveInterval, [this] { Observe(); });
}

// ---- the broker

void SimAgent::Dial() {
  const bool is_isolated = world_.faults && world_.loop.now() < isolated_until_;
  auto link = is_isolated ? nullptr : broker_.Dial();
  if (link == nullptr) {
    Later(world_.random.Between(absl::Milliseconds(500), absl::Seconds(3)), [this] { Dial(); });
    return;
  }
  link_ = link;
  link->agent.on_message = [this](agent::v1::ConnectResponse message) {
    if (!is_up()) return;
    if (world_.Has(Mutation::kDropCancellations)) {
      if (message.has_cancellations()) return;
      if (message.has_assignments()) {
        for (auto& assignment : *message.mutable_assignments()->mutable_assignments()) {
          assignment.set_cancel_requested(false);
        }
      }
    }
    const bool releases = message.has_holds() && !message.holds().held();
    if (world_.Has(Mutation::kDropReleases) && releases) return;
    Handle(agents::BrokerSaid{std::move(message)});
  };
  link->agent.on_broken = [this] {
    HangUp();
    Handle(agents::LinkDown{});
    if (!is_up()) return;
    Later(world_.random.Between(absl::Milliseconds(100), absl::Seconds(3)), [this] { Dial(); });
  };
  Handle(agents::LinkUp{cluster_.Inventory()});
}

void SimAgent::HangUp() {
  if (link_ == nullptr) return;
  link_->agent.on_broken = nullptr;
  if (!world_.Has(Mutation::kHearOldConnections)) link_->agent.on_message = nullptr;
  link_->Cut();
  link_ = nullptr;
}

void SimAgent::Do(agents::SendToBroker& effect) {
  if (link_ != nullptr) link_->ToBroker(std::move(effect.message));
}

void SimAgent::Do(agents::Redial& effect) {
  world_.history.Note(world_.loop, "agent {}: dials again: {}", cluster_.name(),
                      effect.status.ToString());
  HangUp();
  Later(effect.after + world_.random.Between(absl::Milliseconds(100), absl::Seconds(3)),
        [this] { Dial(); });
}

void SimAgent::Do(agents::Stop& effect) {
  auditor_.Fail("progress",
                fmt::format("agent {} gives up: {}", cluster_.name(), effect.status.ToString()));
}

}  // namespace muster::sim
