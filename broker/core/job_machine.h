// Holds a job in memory, and gives it the one way in which its state changes. The states and their
// order are drawn in contract/job_transitions.h.
//
// Small: a million of them wait in memory. Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_JOB_MACHINE_H_
#define MUSTER_BROKER_CORE_JOB_MACHINE_H_

#include <cstdint>
#include <optional>

#include "broker/core/changes.h"
#include "broker/core/cluster.h"
#include "broker/core/request_memory.h"
#include "contract/job_transitions.h"
#include "muster/v1/job.pb.h"

namespace muster::core {

// An event of a job, with what it brings. Times are microseconds since 1970.
struct JobChange {
  contract::JobEvent event;
  ClusterIndex cluster = 0;                          // kAssign: where the next run goes
  std::optional<int64_t> start_unix_micros = {};     // kRun..., kRetry: when the command started
  std::optional<int64_t> next_run_unix_micros = {};  // kRetry: no run before; nothing: at once
  bool is_refused = false;  // kRetry: the cluster did not take the run, and no retry counts it
};

class Job {
  // This comes first, so that no room is lost between it and the public members.
  int64_t start_unix_micros_ = 0;  // meaningless unless has_started_
  uint32_t sequence_ = 0;
  uint16_t runs_ = 0;
  ClusterIndex cluster_ = 0;
  contract::JobStage stage_ = contract::JobStage::kNew;
  bool has_started_ = false;
  uint16_t returned_ = 0;
  uint8_t fail_overs_ = 0;

 public:
  Job() = default;
  // Restores a job as it was stored. Wishes that cannot be true in its state are dropped.
  explicit Job(const LiveJob& stored);

  // Members that no state depends on.
  int16_t priority = 0;
  uint32_t group = 0;  // id of its Group
  RequestMemory::Slot request = RequestMemory::kNone;

  // Takes the job to the next stage. False: the table has no such step, and the job is as it was.
  // A kAssign makes the next run the latest one; the first start of a command is kept.
  [[nodiscard]] bool Apply(const JobChange& change);
  // True if Apply would take the event.
  bool Takes(contract::JobEvent event) const { return contract::Next(stage_, event).has_value(); }
  // Numbers the next step of its history.
  uint32_t CountStep() { return ++sequence_; }
  // Used after a restart: names the cluster that has the latest run of a job that is on one.
  void FindCluster(ClusterIndex cluster) { cluster_ = cluster; }

  contract::JobStage stage() const { return stage_; }
  v1::JobState state() const { return contract::StateOf(stage_); }
  bool cancel_requested() const { return contract::IsCancelAsked(stage_); }
  bool held() const { return contract::IsHeld(stage_); }
  bool released() const { return contract::IsReleased(stage_); }
  bool withdrawn() const { return contract::IsWithdrawn(stage_); }
  bool preempted() const { return contract::IsPreempted(stage_); }
  bool is_queued() const { return state() == v1::JOB_STATE_QUEUED; }
  bool is_on_cluster() const;
  // The hold as it is stored.
  HoldState hold() const;
  uint32_t sequence() const { return sequence_; }  // number of the latest step of its history
  uint16_t runs() const { return runs_; }          // number of the latest run
  // Returns the number of its runs that were given up with their clusters.
  uint8_t fail_overs() const { return fail_overs_; }
  // The number of runs that came back before they began, were refused, or were preempted. No retry
  // counts them.
  uint16_t returned() const { return returned_; }
  // Returns the cluster of the latest run. 0: there is none, or the job waits for the next one.
  ClusterIndex cluster() const { return cluster_; }
  std::optional<int64_t> start_unix_micros() const;  // first start of its command
};
static_assert(sizeof(Job) <= 32);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_JOB_MACHINE_H_
