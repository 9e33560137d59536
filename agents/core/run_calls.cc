#include "agents/core/run_calls.h"

#include <string>
#include <utility>

#include "contract/task_array.h"

namespace muster::agents {
namespace {

// A backend that takes many runs in one call gets one call at a time; that call takes along the
// runs that have come meanwhile.
int EndThreads(int threads, const Capabilities& abilities) {
  return abilities.max_end_batch > 1 ? 1 : threads;
}

// Adds statuses if the backend does not answer for all.
void Complete(size_t size, std::vector<absl::Status>* statuses) {
  statuses->resize(size, absl::UnknownError("the backend did not say what came of it"));
}

// The backend's number of runs in one call counts where it gives one: an array goes whole.
size_t MostLaunched(const Capabilities& abilities) {
  return abilities.goes_along == nullptr ? abilities.max_launch_batch : contract::kMaxArrayTasks;
}

// Null: all go together.
BatchLane<RunHandle>::Together LaunchedTogether(const Capabilities& abilities) {
  if (abilities.goes_along == nullptr) return nullptr;
  return [goes_along = abilities.goes_along](const RunHandle& first, const RunHandle& next,
                                             size_t before) {
    return goes_along(*first.assignment, *next.assignment, before);
  };
}

// The broker's answer to a heartbeat, and its way to the cluster, take a moment at first.
constexpr absl::Duration kLeaseRetry = absl::Seconds(1);

LaunchOutcome DeferredForLease() {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kDeferred;
  outcome.evidence.set_source(v1::EVIDENCE_SOURCE_AGENT);
  outcome.evidence.set_detail(
      "the lease that the job needs (on_cluster_loss) is not known on the cluster yet");
  outcome.retry_after = kLeaseRetry;
  return outcome;
}

}  // namespace

RunCalls::RunCalls(int threads, int file_threads, Backend* backend, FetchSecrets fetch,
                   Answer answer, LeasesLive leases_live)
    : RunCalls(threads, file_threads, backend, backend->capabilities(), std::move(fetch),
               std::move(answer), std::move(leases_live)) {}

RunCalls::RunCalls(int threads, int file_threads, Backend* backend, const Capabilities& abilities,
                   FetchSecrets fetch, Answer answer, LeasesLive leases_live)
    : backend_(*backend),
      usage_of_(abilities.usage_of),
      fetch_secrets_(std::move(fetch)),
      answer_(std::move(answer)),
      leases_live_(std::move(leases_live)),
      launches_(
          threads, MostLaunched(abilities),
          [this](const std::vector<RunHandle>& runs) { LaunchNow(runs); },
          LaunchedTogether(abilities)),
      ends_(EndThreads(threads, abilities), abilities.max_end_batch,
            [this](const std::vector<RunHandle>& runs) { EndNow(runs); }),
      holds_(EndThreads(threads, abilities), abilities.max_end_batch,
             [this](std::vector<Wish> wishes) { HoldNow(std::move(wishes)); }),
      forgets_(threads, kMaxForgetBatch,
               [this](const std::vector<RunHandle>& runs) { ForgetNow(runs); }),
      lookups_(threads),
      usages_(1) {
  if (file_threads > 0) {
    file_launches_.emplace(
        file_threads, MostLaunched(abilities),
        [this](const std::vector<RunHandle>& runs) { LaunchNow(runs); },
        LaunchedTogether(abilities));
  }
}

void RunCalls::Launch(RunHandle run) {
  const bool has_files = run.assignment->spec().uploads_size() > 0;
  (has_files && file_launches_.has_value() ? *file_launches_ : launches_).Add(std::move(run));
}
void RunCalls::End(RunHandle run) { ends_.Add(std::move(run)); }
void RunCalls::Hold(RunHandle run, bool held) { holds_.Add({std::move(run), held}); }
void RunCalls::Forget(RunHandle run) { forgets_.Add(std::move(run)); }

void RunCalls::Lookup(RunHandle run) {
  lookups_.Post([this, run = std::move(run)] {
    answer_(LookedUp{run.run_key, backend_.Lookup(run)});
  });
}

void RunCalls::ReadUsage(std::vector<RunHandle> runs) {
  usages_.Post([this, runs = std::move(runs)] {
    absl::StatusOr<UsageByRun> usage = usage_of_(runs);
    failures_.Note("usage_unread", "", usage.status());
    answer_(UsageRead{std::move(usage)});
  });
}

void RunCalls::Fence(RunHandle run) {
  lookups_.Post([this, run = std::move(run)] {
    answer_(Fenced{run.run_key, backend_.Fence(run)});
  });
}

void RunCalls::Start() {
  launches_.Start();
  if (file_launches_.has_value()) file_launches_->Start();
  ends_.Start();
  holds_.Start();
  forgets_.Start();
}

bool RunCalls::LacksLease(const RunHandle& run) const {
  return leases_live_ != nullptr && KeepsLease(*run.assignment) && !leases_live_();
}

void RunCalls::LaunchNow(const std::vector<RunHandle>& runs) {
  Assignments assignments;
  for (const RunHandle& run : runs) {
    if (LacksLease(run)) {
      answer_(Launched{run.run_key, DeferredForLease()});
      continue;
    }
    auto whole = WithSecrets(run.assignment, fetch_secrets_);
    if (whole.ok()) {
      assignments.push_back(*std::move(whole));
    } else {
      answer_(Launched{run.run_key, NotLaunchedWithout(whole.status())});
    }
  }
  if (assignments.empty()) return;
  std::vector<LaunchOutcome> outcomes = backend_.Launch(assignments);
  outcomes.resize(assignments.size());  // unclear, should the backend not answer for all
  for (size_t i = 0; i < assignments.size(); ++i)
    answer_(Launched{assignments[i]->run_key(), std::move(outcomes[i])});
}

void RunCalls::EndNow(const std::vector<RunHandle>& runs) {
  std::vector<absl::Status> statuses = backend_.End(runs);
  Complete(runs.size(), &statuses);
  for (size_t i = 0; i < runs.size(); ++i) {
    failures_.Note("cancel_failed", runs[i].run_key, statuses[i]);
    answer_(CancelAsked{runs[i].run_key, std::move(statuses[i])});
  }
}

void RunCalls::ForgetNow(const std::vector<RunHandle>& runs) {
  std::vector<absl::Status> statuses = backend_.Forget(runs);
  Complete(runs.size(), &statuses);
  for (size_t i = 0; i < runs.size(); ++i) {
    failures_.Note("clean_up_failed", runs[i].run_key, statuses[i]);
    if (statuses[i].ok()) failures_.Forget(runs[i].run_key);
    answer_(Forgotten{runs[i].run_key, std::move(statuses[i])});
  }
}

// Holds and releases are two calls.
void RunCalls::HoldNow(std::vector<Wish> wishes) {
  for (const bool held : {true, false}) {
    std::vector<RunHandle> runs;
    for (Wish& wish : wishes) {
      if (wish.held == held) runs.push_back(std::move(wish.run));
    }
    if (!runs.empty()) HoldNow(runs, held);
  }
}

void RunCalls::HoldNow(const std::vector<RunHandle>& runs, bool held) {
  std::vector<absl::Status> statuses = backend_.Hold(runs, held);
  Complete(runs.size(), &statuses);
  for (size_t i = 0; i < runs.size(); ++i) {
    failures_.Note(held ? "hold_failed" : "release_failed", runs[i].run_key, statuses[i]);
    answer_(HoldAsked{runs[i].run_key, held, std::move(statuses[i])});
  }
}

}  // namespace muster::agents
