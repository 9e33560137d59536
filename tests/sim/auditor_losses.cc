// Holds the auditor's knowledge of lost clusters: which runs may be given up, and what may run
// then.
#include "fmt/format.h"
#include "tests/sim/auditor.h"

namespace muster::sim {

bool Auditor::MayRunTwice(const JobBook& book) {
  return book.spec->on_cluster_loss() == v1::CLUSTER_LOSS_POLICY_FAIL_OVER_NOW;
}

uint32_t Auditor::CountGivenUp(const JobBook& book, uint32_t number) {
  uint32_t count = 0;
  for (const auto& [run, run_book] : book.runs) count += run <= number && run_book.is_given_up;
  return count;
}

bool Auditor::WasGivenUp(const std::string& run_key) const {
  const auto run = committed_runs_.find(run_key);
  return run != committed_runs_.end() &&
         jobs_.at(run->second.first).runs.at(run->second.second).is_given_up;
}

void Auditor::CheckGivenUp(const v1::Run& run, const JobBook& book) {
  const v1::ClusterLossPolicy policy = book.spec->on_cluster_loss();
  if (policy != v1::CLUSTER_LOSS_POLICY_FAIL_OVER_NOW &&
      policy != v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED) {
    return Fail("fence",
                fmt::format("{} is given up, and its job waits for its cluster", run.run_key()));
  }
  if (run.state() != v1::RUN_STATE_LOST)
    Fail("fence", fmt::format("{} is given up and not LOST", run.run_key()));
  if (!MayRunTwice(book) && runs_[run.run_key()].is_running)
    Fail("fence", fmt::format("{} is given up while it runs", run.run_key()));
}

bool Auditor::CheckAlone(const std::string& run_key) {
  const auto run = committed_runs_.find(run_key);
  if (run == committed_runs_.end()) return false;
  const JobBook& book = jobs_.at(run->second.first);
  const bool was_given_up = WasGivenUp(run_key);
  if (MayRunTwice(book)) {
    if (was_given_up) world_.Count("run that was given up starts all the same");
    return was_given_up;
  }
  if (was_given_up) Fail("fence", fmt::format("{} starts after it was given up", run_key));
  for (const auto& [number, other] : book.runs) {
    const std::string& key = other.last_put.run_key();
    if (key != run_key && runs_[key].is_running)
      Fail("fence", fmt::format("{} starts while {} runs", run_key, key));
  }
  return was_given_up;
}

}  // namespace muster::sim
