#include "tests/sim/client.h"

#include <algorithm>
#include <set>
#include <utility>

#include "broker/core/fingerprint.h"
#include "contract/text.h"
#include "contract/validate.h"
#include "fmt/format.h"

namespace muster::sim {
namespace {

// A request that was not answered is repeated after this time.
constexpr absl::Duration kPatience = absl::Seconds(3);
constexpr absl::Duration kWatchInterval = absl::Seconds(2);

// The status without its details: their order is another each time, and a seed must reproduce.
std::string WordsOf(const absl::Status& status) {
  return fmt::format("{}: {}", absl::StatusCodeToString(status.code()), ToStd(status.message()));
}

}  // namespace

SimClient::SimClient(World* world, Auditor* auditor, SimBroker* broker,
                     std::vector<std::string> clusters)
    : world_(*world), auditor_(*auditor), broker_(*broker), clusters_(std::move(clusters)) {}

std::shared_ptr<const v1::JobSpec> SimClient::MakeSpec(const std::string& name,
                                                       bool runs_for_ever) {
  Random& random = world_.random;
  v1::JobSpec spec;
  spec.mutable_command()->mutable_argv()->add_args("true");
  spec.set_project(name.back() % 2 == 0 ? "even" : "odd");
  if (name.back() == '7') spec.set_project(std::string(kPickyProject));
  spec.set_priority(static_cast<int32_t>(random.Below(3)));
  auto& labels = *spec.mutable_labels();
  labels["operation"] = name;
  // Many commands are over before anyone looks.
  const absl::Duration duration =
      random.Chance(0.3) ? random.Between(absl::Milliseconds(1), absl::Milliseconds(500))
                         : random.Skewed(absl::Seconds(1), absl::Minutes(2));
  labels["duration_ms"] =
      runs_for_ever ? "-1" : fmt::format("{}", absl::ToInt64Milliseconds(duration));
  const uint64_t fate = random.Below(20);
  if (fate < 3) labels["exit"] = fmt::format("{}", 1 + random.Below(255));
  if (fate == 3) labels["signal"] = "9";
  if (fate == 4) labels["refused"] = "1";
  if (fate == 5) labels["vanishes"] = "1";
  const auto until = [&](const char* label) {
    labels[label] = fmt::format("{}", 1 + random.Below(4));
  };
  if (fate == 6 || fate == 7) until("flaky_until");
  if (fate == 8) until("preempted_until");
  if (fate == 9) until("no_image_until");
  if (random.Chance(0.5)) {
    spec.mutable_retry()->set_max_runs(static_cast<uint32_t>(1 + random.Below(4)));
    spec.mutable_retry()->set_on_preemption(random.Chance(0.5));
    spec.mutable_retry()->mutable_backoff()->set_seconds(static_cast<int64_t>(random.Below(30)));
  }
  spec.set_preemptible(random.Chance(0.3));
  if (random.Chance(0.3))
    spec.mutable_time_limit()->set_seconds(static_cast<int64_t>(120 + random.Below(600)));
  const uint64_t on_loss = random.Below(4);
  if (on_loss == 2) spec.set_on_cluster_loss(v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED);
  // A run that is given up and that no journal knows any more ends by itself alone.
  if (on_loss == 3 && !runs_for_ever)
    spec.set_on_cluster_loss(v1::CLUSTER_LOSS_POLICY_FAIL_OVER_NOW);
  if (random.Chance(0.2)) {
    const std::string& named = clusters_[random.Below(clusters_.size())];
    // A broker refuses a job of the picky project that names another.
    spec.mutable_placement()->add_clusters(
        spec.project() == kPickyProject ? std::string(kPickyCluster) : named);
  }
  return std::make_shared<const v1::JobSpec>(*contract::NormalizeJobSpec(std::move(spec)));
}

SimClient::Operation SimClient::MakeOperation(int number) {
  Random& random = world_.random;
  Operation operation;
  operation.name = fmt::format("operation-{}", number);
  const bool runs_for_ever = random.Chance(0.1);
  operation.item.spec = MakeSpec(operation.name, runs_for_ever);
  operation.item.request_id = operation.name;
  operation.item.fingerprint = core::RequestFingerprintOf(*operation.item.spec);
  v1::JobSpec another = *operation.item.spec;
  another.set_nodes(2);
  operation.another_spec = std::make_shared<const v1::JobSpec>(std::move(another));
  operation.wants_cancel = runs_for_ever || random.Chance(0.2);
  operation.cancel_after = random.Skewed(absl::Milliseconds(1), absl::Minutes(3));
  operation.wants_hold = random.Chance(0.2);
  operation.hold_after = random.Skewed(absl::Milliseconds(1), absl::Minutes(1));
  operation.release_after = random.Between(absl::Milliseconds(1), absl::Minutes(2));
  operation.wants_move = random.Chance(0.3);
  operation.move_after = random.Skewed(absl::Milliseconds(1), absl::Minutes(1));
  return operation;
}

void SimClient::Start(int operations, absl::Duration period) {
  for (int i = 0; i < operations; ++i) operations_.push_back(MakeOperation(i));
  for (size_t next = 0; next < operations_.size();) {
    std::vector<size_t> together;
    const size_t size = world_.random.Chance(0.2) ? 1 + world_.random.Below(5) : 1;
    while (together.size() < size && next < operations_.size()) together.push_back(next++);
    world_.loop.After(world_.random.Between(absl::ZeroDuration(), period),
                      [this, together] { Submit(together); });
  }
  Watch();
}

void SimClient::MakeDependent(const std::vector<size_t>& together, size_t place) {
  Random& random = world_.random;
  Operation& operation = operations_[together[place]];
  if (std::exchange(operation.was_sent, true) || !random.Chance(0.2)) return;
  v1::JobSpec spec = *operation.item.spec;
  std::set<size_t> others;
  for (uint64_t i = 1 + random.Below(3); i > 0 && together[place] > 0; --i)
    others.insert(random.Below(together[place]));
  for (const size_t other : others) {
    const auto at = std::find(together.begin(), together.begin() + place, other);
    v1::JobDependency one;
    one.set_job_id(operations_[other].job);
    if (at != together.begin() + place) {
      one.clear_job_id();
      one.set_request(static_cast<uint32_t>(at - together.begin()) + 1);
    }
    one.set_outcome(static_cast<v1::JobOutcome>(1 + random.Below(3)));
    if (one.job_id() != 0 || one.request() != 0) *spec.add_depends_on() = one;
  }
  if (spec.depends_on().empty()) return;
  world_.Count("job that depends on others");
  operation.item.spec = std::make_shared<const v1::JobSpec>(spec);
  operation.item.fingerprint = core::RequestFingerprintOf(spec);
  spec.set_nodes(2);
  operation.another_spec = std::make_shared<const v1::JobSpec>(std::move(spec));
}

void SimClient::Submit(std::vector<size_t> operations) {
  // The repeat is planned before the answer is known, so that some come although the first was
  // answered.
  const bool repeats_anyway = world_.random.Chance(0.1);
  world_.loop.After(kPatience, [this, operations, repeats_anyway] {
    if (operations_[operations.front()].job == 0 || repeats_anyway) Submit(operations);
  });
  if (!broker_.is_up()) return;
  core::Submit request;
  request.user = "someone";
  for (size_t i = 0; i < operations.size(); ++i) {
    MakeDependent(operations, i);
    request.items.push_back(operations_[operations[i]].item);
    // As the use case does, which looks before the submit is on its way.
    for (const v1::JobDependency& one : request.items.back().spec->depends_on()) {
      const auto states = broker_.store().GetStates({one.job_id()});
      if (states->front() >= v1::JOB_STATE_SUCCEEDED) request.ends[one.job_id()] = states->front();
    }
  }
  broker_.Submit(std::move(request), [this, operations](auto result) {
    // The connection may break while the answer travels.
    if (world_.Strikes(0.1)) return;
    OnSubmitted(operations, result);
  });
}

void SimClient::OnSubmitted(const std::vector<size_t>& operations,
                            const absl::StatusOr<v1::SubmitJobsResponse>& result) {
  // A cluster that a job names may not have connected yet, so the client tries again.
  if (absl::IsNotFound(result.status()) || absl::IsFailedPrecondition(result.status())) return;
  // A job that others depend on has ended since it was looked at, as its repeat will see.
  if (absl::IsAborted(result.status())) return world_.Count("end seen too late for a submit");
  if (!result.ok()) return auditor_.Fail("once", WordsOf(result.status()));
  for (size_t i = 0; i < operations.size(); ++i) {
    Operation& operation = operations_[operations[i]];
    const bool is_first = operation.job == 0;
    if (!is_first) world_.Count("submit repeated after its answer");
    operation.job = result->responses(static_cast<int>(i)).job_id();
    auditor_.SubmitAcknowledged(operation.name, operation.job);
    if (!is_first) continue;
    world_.history.Note(world_.loop, "client: {} is job {}", operation.name, operation.job);
    if (operation.wants_cancel) {
      world_.loop.After(operation.cancel_after, [this, index = operations[i]] { Cancel(index); });
    }
    if (operation.wants_hold) {
      world_.loop.After(operation.hold_after, [this, index = operations[i]] { Hold(index); });
    }
    if (operation.wants_move) {
      world_.loop.After(operation.move_after, [this, index = operations[i]] { Move(index); });
    }
    if (world_.random.Chance(0.1)) {
      world_.loop.After(kPatience, [this, index = operations[i]] { RepeatWithAnotherSpec(index); });
    }
  }
}

void SimClient::RepeatWithAnotherSpec(size_t operation) {
  if (!broker_.is_up()) return;
  core::Submit request;
  request.user = "someone";
  const Operation& first = operations_[operation];
  request.items = {
      {first.another_spec, first.item.request_id, core::RequestFingerprintOf(*first.another_spec)}};
  broker_.Submit(std::move(request), [this, operation](auto result) {
    if (absl::IsAlreadyExists(result.status())) return;
    auditor_.Fail("once", fmt::format("another spec with the request_id of {} got {}",
                                      operations_[operation].name, WordsOf(result.status())));
  });
}

void SimClient::Cancel(size_t index) {
  if (operations_[index].cancel_is_acknowledged) return;
  world_.loop.After(kPatience, [this, index] { Cancel(index); });
  if (!broker_.is_up()) return;
  core::Cancel request;
  request.jobs = {operations_[index].job};
  request.user = "someone";
  request.reason = "changed my mind";
  broker_.Cancel(std::move(request), [this, index](const absl::Status& status) {
    if (world_.Strikes(0.1)) return;
    if (!status.ok()) return auditor_.Fail("cancel", WordsOf(status));
    operations_[index].cancel_is_acknowledged = true;
    auditor_.CancelAcknowledged(operations_[index].job);
    world_.history.Note(world_.loop, "client: job {} is to be canceled", operations_[index].job);
  });
}

void SimClient::Hold(size_t index) {
  if (operations_[index].hold_is_answered) return;
  world_.loop.After(kPatience, [this, index] { Hold(index); });
  if (!broker_.is_up()) return;
  core::Hold request;
  request.jobs = {operations_[index].job};
  request.user = "someone";
  broker_.Hold(std::move(request), [this, index](const absl::Status& status) {
    Operation& operation = operations_[index];
    if (world_.Strikes(0.1) || operation.hold_is_answered) return;
    operation.hold_is_answered = true;
    if (absl::IsFailedPrecondition(status)) {
      world_.Count("hold came too late");
      operation.release_is_answered = true;
      return;
    }
    if (!status.ok()) return auditor_.Fail("hold", WordsOf(status));
    auditor_.HoldAcknowledged(operation.job);
    world_.history.Note(world_.loop, "client: job {} is to be held", operation.job);
    world_.loop.After(operation.release_after, [this, index] { Release(index); });
  });
}

void SimClient::Release(size_t index) {
  if (operations_[index].release_is_answered) return;
  world_.loop.After(kPatience, [this, index] { Release(index); });
  if (!broker_.is_up()) return;
  core::Hold request;
  request.jobs = {operations_[index].job};
  request.user = "someone";
  request.held = false;
  broker_.Hold(std::move(request), [this, index](const absl::Status& status) {
    if (world_.Strikes(0.1)) return;
    if (!status.ok()) return auditor_.Fail("hold", WordsOf(status));
    operations_[index].release_is_answered = true;
    auditor_.ReleaseAcknowledged(operations_[index].job);
    world_.history.Note(world_.loop, "client: job {} is released", operations_[index].job);
  });
}

// Moves it once: its client does not care whether it was moved or stayed.
void SimClient::Move(size_t index) {
  if (!broker_.is_up()) return;
  core::Move request;
  request.jobs = {operations_[index].job};
  request.user = "someone";
  broker_.Move(std::move(request), [this](const absl::Status& status) {
    if (!status.ok()) auditor_.Fail("withdrawal", WordsOf(status));
  });
}

// Each look is a watch that was broken off and is resumed where it was.
void SimClient::Watch() {
  const int limit = 1 + static_cast<int>(world_.random.Below(50));
  const uint64_t after =
      watched_up_to_ + (world_.Has(Mutation::kWatchSkips) && watched_up_to_ % 50 == 49 ? 1 : 0);
  const auto transitions = broker_.store().ListTransitions(store::Scope::All(), {}, after, limit);
  for (const auto& seen : *transitions) {
    auditor_.Watched(seen.job, seen.transition);
    watched_up_to_ = seen.transition.sequence();
  }
  world_.loop.After(kWatchInterval, [this] { Watch(); });
}

bool SimClient::IsDone() const {
  for (const Operation& operation : operations_) {
    if (operation.job == 0 || (operation.wants_cancel && !operation.cancel_is_acknowledged) ||
        (operation.wants_hold && !operation.release_is_answered)) {
      return false;
    }
  }
  // Usage that came last has a sequence and no transition.
  return broker_.store().ListTransitions(store::Scope::All(), {}, watched_up_to_, 1)->empty();
}

}  // namespace muster::sim
