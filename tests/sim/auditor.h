// clang-format off: a table.
// Checks what must always hold, from books of its own: what clients were told, what the clusters
// truly did, and what the broker committed. It uses the broker's types of changes and its Store
// interface, to read what was committed, and none of its decisions.
//
//   durable        an acknowledged submit is in the store for ever, as it was submitted
//   once           one request_id of one project is one job
//   single start   the command of a run starts once (a requeue by the cluster's own scheduler
//                  aside), only while the run is committed and its job has not ended
//   stale          what an old connection or an old broker says changes nothing; epochs rise
//   legal          only legal transitions; one end, which stays
//   retry          a run that failed by its cluster's fault is followed by another one, and no
//   other
//                  end is; never before its time, and never beyond the job's budget
//   hold           an acknowledged hold is in the store; a held job gets no run
//   exit           the end that is reported is the one that the command had
//   history        each job's transitions are numbered without gaps; a watch that is broken off
//                  and resumed sees each once
//   cancel         an acknowledged cancel ends the job, as CANCELED unless its run succeeded, and
//                  is followed by no other run; none of it starts after its end, and an agent that
//                  starts after it does not launch it
//   dependency     no run of a job is assigned before the jobs that it depends on have ended as it
//                  needs; it fails in the commit in which one ends otherwise, and not without that
//   places         no run of a job is on a cluster that the job's project may not use
//   fence          only jobs whose users want it fail over; no run of the others, and none that is
//                  to be fenced, runs at the same time as another one of its job, or starts after
//                  it was given up
//   cordon         an acknowledged cordon is in the store, and its cluster gets no new run until
//                  its end is asked for
//   withdrawal     a run that came back from its cluster never starts, and ended because it was
//   asked
//                  for; one that began is not followed for that
//   preemption     only jobs that call themselves preemptible are preempted, for one of a higher
//                  priority that is not, at most five times; a run that ended by itself is its end
//   quotas         no commit leaves a project with more active runs than its quota
//   conservation   submitted = queued + active + ended; after the quiet no orphan on any cluster
//   replay         the stored transitions give the stored states
//   progress       once the faults stop, every job ends within a bound
// clang-format on
#ifndef MUSTER_TESTS_SIM_AUDITOR_H_
#define MUSTER_TESTS_SIM_AUDITOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "broker/core/changes.h"
#include "broker/store/store.h"
#include "muster/v1/job.pb.h"
#include "tests/fake/cluster.h"
#include "tests/sim/world.h"

namespace muster::sim {

// Returns the usage of each run, made of its key.
inline v1::ResourceUsage TrueUsage(const std::string& run_key) {
  v1::ResourceUsage usage;
  usage.set_max_rss_bytes(std::hash<std::string>()(run_key));
  return usage;
}

using fake::TrueEnd;

class Auditor {
 public:
  explicit Auditor(World* world) : world_(*world) {}

  // Returns the first thing that went wrong; empty if nothing has.
  const std::string& violation() const { return violation_; }
  void Fail(std::string_view invariant, std::string what);

  // ---- clients
  void SubmitAcknowledged(const std::string& operation, uint64_t job);
  void CancelAcknowledged(uint64_t job);
  void HoldAcknowledged(uint64_t job);
  void ReleaseAcknowledged(uint64_t job);
  void CordonAcknowledged(const std::string& cluster);
  void UncordonAsked(const std::string& cluster) { cordoned_.erase(cluster); }
  void Watched(uint64_t job, const v1::Transition& transition);

  // ---- the broker
  void Committed(absl::Span<const core::Change> changes);
  void ClockJumped(absl::Duration by);
  void HandledStale(std::string_view what, size_t changes);

  // ---- the agents
  // A process begins with this run in its journal, not launched or not known to be.
  void TakenUp(const std::string& run_key);
  void Launching(const std::string& run_key);

  // ---- the clusters
  void Submitted(const std::string& run_key);
  void Started(const std::string& run_key, int restart);
  void Requeued(const std::string& run_key) { runs_[run_key].is_running = false; }
  void Ended(const std::string& run_key, TrueEnd end);
  // The cluster has dropped the run, and neither its history nor a record tells of it: it may be
  // reported as LOST.
  void LeftNoTrace(const std::string& run_key);
  // The agent has let the run go.
  void Forgotten(const std::string& run_key, bool is_live);

  // ---- the end
  void CheckStore(const store::Store& store);
  // `quiet` says that the faults are over and everything should have ended.
  void CheckAfterQuiet(const store::Store& store, size_t live_on_clusters, size_t held_by_agents);
  bool AllEnded() const;
  // Returns whether the broker gave the run up with its cluster.
  bool WasGivenUp(const std::string& run_key) const;
  size_t jobs() const { return jobs_.size(); }

 private:
  struct RunBook {
    v1::RunState state = v1::RUN_STATE_UNSPECIFIED;
    v1::Run last_put;
    bool logs_complete = false;
    bool was_canceled = false;  // when it ended
    bool came_back = false;     // it ended because it was asked for, before it began
    bool was_preempted = false;
    bool is_followed = false;  // its end took the job back to the queue
    bool is_given_up = false;  // with its cluster
  };
  struct JobBook {
    std::string operation;
    std::shared_ptr<const v1::JobSpec> spec;
    v1::JobState state = v1::JOB_STATE_QUEUED;
    uint64_t job_sequence = 0;
    bool cancel_requested = false;
    int holds = 0;  // steps that held it
    bool is_held = false;
    bool is_withdrawn = false;
    bool is_preempted = false;
    int preemptions = 0;
    uint32_t returned = 0;                // runs that came back
    std::optional<absl::Time> wait_ends;  // as its last step back to the queue promised
    absl::Time wait_begins;               // in true time, or a little before
    std::map<uint32_t, RunBook> runs;
    std::optional<core::UpdateJob> last_update;
  };
  struct TrueRun {
    int submissions = 0;
    std::set<int> starts;
    bool is_live = false;
    bool is_running = false;  // its command
    bool is_untraceable = false;
    std::optional<TrueEnd> end;
  };

  void Commit(const core::InsertJob& change);
  void Commit(const core::AppendTransition& change);
  void Commit(const core::UpdateJob& change);
  void Commit(const core::PutWithdrawal& change);
  void Commit(const core::PutRun& change);
  void Commit(const core::PutUsage& change);
  void Commit(const core::PutCluster& change);
  void Commit(const core::PutBrokerEpoch& change);
  template <typename Change>
  void Commit(const Change&) {}

  // submitted = queued + active + ended, where the runs of a job say which of them it is.
  void CheckConservation();
  // No project has more active runs than its quota.
  void CheckQuota();
  void CheckRetryStep(uint64_t job, JobBook* book, const v1::Transition& transition);
  void CheckAssignment(uint64_t job, const JobBook& book, const v1::Transition& transition);
  // Checks all jobs that depend on others, once a commit is whole.
  void CheckDependents();
  // Returns the number of the first job that ended otherwise than this one needs; 0 if none did.
  uint64_t FailedDependency(const JobBook& book) const;
  // Checks that the end of a run was followed by what its job's policy and the truth ask for.
  void CheckFollowed(const std::string& run_key, const RunBook& run, const JobBook& book);
  // auditor_losses.cc
  // The job's runs may run at the same time: FAIL_OVER_NOW.
  static bool MayRunTwice(const JobBook& book);
  void CheckGivenUp(const v1::Run& run, const JobBook& book);
  // Checks that nothing else of its job runs. Returns whether it was given up before.
  bool CheckAlone(const std::string& run_key);
  // Returns the number of runs up to this one that were given up.
  static uint32_t CountGivenUp(const JobBook& book, uint32_t number);
  void CheckPlace(const core::PutRun& change, const JobBook& book);
  // Checks that the cluster of a run that has just been assigned takes some.
  void CheckCordon(const v1::Run& run);
  void CheckWait(uint64_t job, JobBook* book, const core::UpdateJob& update);
  // auditor_preemptions.cc
  void NotePreemption(uint64_t job, JobBook* book);
  void CheckPreemption(const core::PutWithdrawal& change);
  void CheckPreempted(uint64_t job, JobBook* book, const v1::Transition& transition);
  void CheckReturn(uint64_t job, JobBook* book, const v1::Transition& transition);
  void CheckRunStep(uint64_t job, JobBook* book, const v1::Transition& transition);
  void CheckEnd(const std::string& run_key, const v1::Run& run, const JobBook& book);
  void CheckJob(const v1::Job& job);
  void CheckReplay(const v1::Job& job, const std::vector<v1::Transition>& transitions);
  bool IsAlive(const std::string& run_key) const;

  World& world_;
  std::string violation_;

  std::map<uint64_t, JobBook> jobs_;
  std::set<uint64_t> dependents_;                     // jobs that have had no run
  std::map<std::string, uint64_t> job_of_operation_;  // committed
  std::map<std::string, uint64_t> acknowledged_;      // by operation
  std::set<uint64_t> canceled_;                       // acknowledged
  std::set<std::string> canceled_before_start_;       // of their agent
  std::map<std::string, TrueRun> runs_;               // by run key
  std::map<std::string, std::pair<uint64_t, uint32_t>> committed_runs_;  // by run key
  std::vector<std::pair<uint64_t, uint64_t>> committed_history_;         // job, sequence
  std::vector<std::pair<uint64_t, uint64_t>> watched_;
  uint64_t last_sequence_ = 0;
  absl::Time last_clock_jump_ = absl::InfinitePast();  // of the broker's machine
  uint64_t broker_epoch_ = 0;
  std::map<std::string, uint64_t> agent_epochs_;
  std::set<std::string> cordoned_;        // acknowledged, and nobody has asked for the end
  std::set<std::string> stored_cordons_;  // committed
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_AUDITOR_H_
