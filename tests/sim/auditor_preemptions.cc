// The auditor's knowledge of jobs whose runs end because another one takes their room.
#include "fmt/format.h"
#include "tests/sim/auditor.h"

namespace muster::sim {
namespace {

constexpr int kMostPreemptions = 5;

}  // namespace

void Auditor::NotePreemption(uint64_t job, JobBook* book) {
  book->is_preempted = true;
  if (!book->spec->preemptible())
    Fail("preemption", fmt::format("job {} does not call itself preemptible", job));
  if (++book->preemptions > kMostPreemptions)
    Fail("preemption", fmt::format("job {} is preempted again and again", job));
}

void Auditor::CheckPreemption(const core::PutWithdrawal& change) {
  const JobBook& book = jobs_[change.job];
  const auto other = jobs_.find(change.withdrawal->for_job());
  if (!book.is_preempted || other == jobs_.end())
    return Fail("preemption", fmt::format("job {} is preempted for none", change.job));
  if (other->second.spec->priority() <= book.spec->priority())
    Fail("preemption", fmt::format("job {} is preempted for one that comes later", change.job));
  if (other->second.spec->preemptible())
    Fail("preemption", fmt::format("job {} is preempted for a preemptible one", change.job));
}

void Auditor::CheckPreempted(uint64_t job, JobBook* book, const v1::Transition& transition) {
  world_.Count("job preempted");
  ++book->returned;
  if (!book->is_preempted || transition.run_state() != v1::RUN_STATE_CANCELED ||
      transition.job_state() != v1::JOB_STATE_QUEUED)
    Fail("preemption", fmt::format("job {} is preempted and was not asked for", job));
}

}  // namespace muster::sim
