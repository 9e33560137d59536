// The Backend contract on top of a Kubernetes API server.
//
// Launch, Lookup: backend_launch.cc. Observe: backend_observe.cc. Cancel: backend_end.cc.
// SetHeld: backend_hold.cc. Forget, and what is left of runs: backend_sweep.cc. Answers to people:
// backend_answers.cc.
#ifndef MUSTER_AGENTS_KUBERNETES_BACKEND_H_
#define MUSTER_AGENTS_KUBERNETES_BACKEND_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/core/check_list.h"
#include "agents/core/failure_log.h"
#include "agents/core/worker_lane.h"
#include "agents/hosts/local_host.h"
#include "agents/kubernetes/api/api.h"
#include "agents/kubernetes/api/kubeconfig.h"
#include "agents/kubernetes/cluster/cluster_view.h"
#include "agents/kubernetes/cluster/named_things.h"
#include "agents/kubernetes/cluster/queue_view.h"
#include "agents/kubernetes/file_room.h"
#include "agents/kubernetes/given_up.h"
#include "agents/kubernetes/job_calls.h"
#include "agents/kubernetes/kubernetes.h"
#include "agents/kubernetes/logs/log_follower.h"
#include "agents/kubernetes/manifest/manifest.h"
#include "agents/kubernetes/namespace_runs.h"
#include "agents/kubernetes/start_queue.h"

namespace muster::kubernetes {

// How often all runs are looked at, so that what was seen stays fresh and waiting ends in time;
// what changes is looked at at once. The watches have the answers: nothing is asked for it.
inline constexpr absl::Duration kObserveIntervalOfAll = absl::Seconds(2);

// Changes of Jobs that looks at them ask for and that are under way at the same time, and deletions
// likewise: of those that hang on a webhook a few keep the others waiting no more than need be, and
// the server is not flooded. Holds and releases, which somebody waits for, wait for no deletion.
inline constexpr int kChangeThreads = 4;
inline constexpr int kDeletionThreads = 4;

// Launches of runs that bring files along, under way at the same time: each needs some 25 MiB for
// an archive of the largest size, and its requests take their time.
inline constexpr int kMaxLaunchesWithFiles = 4;

class KubernetesBackend final : public agents::Backend {
 public:
  KubernetesBackend(KubernetesConfig config, Endpoint endpoint, const std::string& state_dir);
  ~KubernetesBackend() override;

  absl::Status Probe() override;
  absl::StatusOr<v1::Inventory> Inventory() override;
  v1::ClusterChecks Check() override;
  absl::StatusOr<v1::ClusterDetails> Describe() override;
  absl::StatusOr<v1::JobPlan> Plan(const v1::JobSpec& spec, const std::string& user) override;

  absl::Status Adopt(const std::vector<agents::RunHandle>& runs) override;
  void AllowStarts() override;
  void NoteHold(const std::string& run_key, bool held) override { queue_.SetHeld(run_key, held); }
  agents::LaunchOutcome Launch(const agent::v1::Assignment& assignment) override;
  agents::LookupOutcome Lookup(const agents::RunHandle& run) override;
  agents::ObserveOutcome Observe(const std::vector<agents::RunHandle>& runs) override;
  absl::Status Cancel(const agents::RunHandle& run) override;
  absl::Status SetHeld(const agents::RunHandle& run, bool held) override;
  std::vector<agents::LogSource> Logs(const agents::RunHandle& run) override;
  absl::Status Forget(const agents::RunHandle& run) override;
  // The API server answers from what is committed, and a launch that comes twice makes one Job.
  absl::Duration LookupGrace() const override { return absl::ZeroDuration(); }
  int MaxLaunchesWithFiles() const override { return kMaxLaunchesWithFiles; }
  absl::Duration ObserveInterval() const override { return kObserveIntervalOfAll; }
  void SetWaker(std::function<void()> wake) override;
  bool TakeInventoryNews() override { return inventory_news_.exchange(false); }
  std::map<std::string, uint64_t> SchedulerCalls() const override { return api_.Calls(); }
  // Runs of which something is remembered because their Job was, or is to be, changed.
  size_t CountChanges() const;

 private:
  // How many pods the run is to have.
  static uint32_t PodsOf(const agents::RunHandle& run);
  // Where its Job is.
  std::string NamespaceOf(const agents::RunHandle& run) const;
  // The runs of its namespace; nowhere_: the agent has none there, and makes none.
  NamespaceRuns& HomeOf(const std::string& name_space);
  NamespaceRuns& HomeOf(const agents::RunHandle& run) { return HomeOf(NamespaceOf(run)); }
  // Makes them if they are not there; before their watches begin.
  void AddHome(const std::string& name_space);
  void Wake();
  // Tells the broker that its knowledge of the cluster is out of date.
  void TellInventory();

  // ---- launch
  // A launch has met that the agent may not make that there, or that there is no such place: the
  // pool takes no jobs from now on. Why the run waits.
  absl::Status NoteForbidden(const std::string& run_key, Access what, const absl::Status& why);
  // Returns the answer of a look-up, without asking the server, for a run whose namespace takes no
  // launches; nothing: the server is to be asked.
  std::optional<agents::LookupOutcome> LookUpForbidden(const agents::RunHandle& run);
  // The run's objects, or why the cluster cannot have it. UNAVAILABLE: whether it can is not known
  // yet.
  absl::StatusOr<RunObjects> Prepare(const agent::v1::Assignment& assignment,
                                     const std::vector<std::string>& file_parts);
  // Packs the files that the run brings along into `parts`; nothing: that is done, or there are
  // none. The right to have an archive is checked before its content is fetched.
  LaunchEnd PackBroughtFiles(const std::string& run_key, const v1::JobSpec& spec,
                             std::vector<std::string>* parts);
  LaunchEnd TakeFileRoom(const std::string& run_key, const v1::JobSpec& spec);
  // Returns the answer of a look-up, without asking the server, for a run that waits for room for
  // its archive; nothing: it does not wait.
  std::optional<agents::LookupOutcome> LookUpRoomless(const agents::RunHandle& run);
  // The bytes of the archive of what the job brings along; 0: nothing; none: the broker has not got
  // the list of the files. An error: what speaks against them.
  absl::StatusOr<std::optional<uint64_t>> BroughtBytes(const v1::JobSpec& spec) const;
  // Returns whether there is room for so much now.
  bool WarnOfFileRoom(uint64_t archive_bytes, agents::CheckList* checks) const;
  // The rest of a plan: what the API server says of the objects, and when the run would start.
  void PlanOnServer(const agent::v1::Assignment& planned, const RunObjects& objects,
                    bool has_file_room, v1::JobPlan* plan, agents::CheckList* checks);
  // Warns of things that the job names and that are not there yet. Returns whether there are any.
  bool WarnOfAwaited(const v1::JobSpec& spec, const std::string& name_space,
                     agents::CheckList* checks);
  // A launch that was cut short leaves a Job that never starts; it is deleted at once if nobody may
  // resume the launch.
  agents::LaunchOutcome TakeBack(agents::LaunchOutcome outcome, const JobObject& job);
  // Launches a run that the queue expects.
  agents::LaunchOutcome LaunchInPlace(const StartQueue::AssignmentPtr& run);
  // Lets the runs go that may start now, on a thread of its own: the observations are told
  // meanwhile.
  void WakeStarter();
  // Lets the runs go that may start now, `only` that run, or all if it is empty. A run that cannot
  // be let go tells why, and is tried again; in a namespace where the server is in trouble no other
  // run is tried.
  void StartReady(const std::string& only);
  // The Job of a run of which nobody knows whether it was launched; nothing: there is none.
  absl::StatusOr<std::optional<JobObject>> FindLaunched(const agents::RunHandle& run);
  // Returns whether the launch of that Job is complete, or its program has begun nevertheless.
  // Errors: the server could not be asked.
  absl::StatusOr<bool> IsLaunched(const JobObject& job);
  // Ends a run that waits for something that will never be, with the server's words. Errors: they
  // could not be written down.
  absl::Status GiveUp(const agent::v1::Assignment& run, const absl::Status& refusal);
  // Lets a Job go, by its queue if it has one, whether or not the run is held. Errors are those of
  // JobCalls::PatchJob.
  absl::StatusOr<JobObject> SendOff(const JobObject& job, const agent::v1::Assignment& run);
  // OK as well: it is gone.
  absl::Status ChangeJob(const ObjectName& job, const Json& patch);
  // Remembers the Job as it is now. OK as well: it is gone.
  absl::Status Keep(absl::StatusOr<JobObject> patched);
  // NOT_FOUND: its Job is gone, or another one.
  absl::Status LetGo(const agent::v1::Assignment& run);

  // ---- observe
  // The namespaces whose runs can be judged now. `trouble`: why none can, if there are none.
  std::set<NamespaceRuns*> ReadyHomes(absl::Status* trouble);
  // Returns the news of the run; nothing: there is none. Errors: the server could not be asked.
  absl::StatusOr<std::optional<agents::Observation>> Look(const agents::RunHandle& run);
  // Collects the facts of the run, and asks the server for those that no watch has told. Nothing:
  // the facts of the watches are out of date, and their next ones count.
  absl::StatusOr<std::optional<RunFacts>> Gather(const agents::RunHandle& run);
  // Returns whether a Job that Muster has given up and deleted goes on all the same.
  absl::StatusOr<bool> GoesOn(const JobObject& job);
  absl::StatusOr<std::optional<agents::Observation>> JudgeRun(const agents::RunHandle& run,
                                                              const RunFacts& facts);
  // Its assignment, with the namespace where it is and the queue that decides there.
  StartQueue::AssignmentPtr InPlace(const agents::RunHandle& run) const;
  StartQueue::AssignmentPtr InPlace(StartQueue::AssignmentPtr run,
                                    const std::string& name_space) const;
  // A run that is to be let go once there is room, and what it waits for.
  void Queue(const agents::RunHandle& run, const RunFacts& facts, agents::Observation* seen);
  // Queues a run whose Job has not been let go, or was taken back for a hold.
  void QueueAgain(const agents::RunHandle& run, const RunFacts& facts, agents::Observation* seen);
  // Its Job has not been let go, or was taken back, as far as is known now.
  bool StillWaits(const agents::RunHandle& run);
  // Takes a Job that was let go back if it is to be held, and tells why that is not done yet. Runs
  // that wait in queue_ are held there, and go on from there. Nothing else changes a Job for a
  // hold.
  void HeedHold(const agents::RunHandle& run, const RunFacts& facts, agents::Observation* seen);
  // How long that has been wished of the run, as far as looks at it have noticed.
  absl::Duration HoldWishedFor(const std::string& run_key);
  // Takes the Job back as it is once the server can be asked, if that is still right then. Errors:
  // ABORTED, it has changed; as those of JobCalls::PatchJob.
  absl::Status TakeBack(const agents::RunHandle& run);
  // The results of changes of one kind to a run's Job.
  struct Tries {
    absl::Time not_before = absl::InfinitePast();  // the next one
    std::string trouble;  // the result of the last one; empty: it was done, or there was none
  };
  struct JobChange {
    // Since when a hold is wished, as far as a look has noticed; none: it is not.
    std::optional<absl::Time> hold_wished;
    bool is_under_way = false;
    bool is_unwanted = false;  // to be forgotten once nothing is under way
    Tries patches;
    Tries deletions;
  };
  // Changes the run's Job on a thread of its own, unless another change of it is under way, or the
  // same kind was tried a moment ago. Returns why the last try of the kind has failed; empty: it
  // has not, or there was none.
  std::string TryChange(const agents::RunHandle& run, Tries JobChange::*kind,
                        std::function<absl::Status()> change);
  bool IsChangeUnderWay(const std::string& run_key) const;
  // Nobody wishes it any longer.
  void DropHold(const std::string& run_key);
  // Nothing will be changed of it any more.
  void ForgetChanges(const std::string& run_key);
  // Why such a run waits; `seen`: what its Job says of that.
  v1::StateReason ReasonInQueue(const JobObject& job, const agents::Observation& seen) const;
  // The run cannot go on: why is kept, its Job is deleted, and the run has failed once that is
  // done. Until then why it is not is in the run's reason.
  absl::StatusOr<std::optional<agents::Observation>> End(const agents::RunHandle& run,
                                                         const JobObject& job,
                                                         agents::Observation seen);
  // Deletes the Job of a run that was given up, unless its program runs after all by now, or has.
  absl::Status TakeAway(const agents::RunHandle& run, const ObjectName& job);
  // Returns the end of a run whose Job is not there, and whose end nobody saw.
  agents::Observation Gone(const agents::RunHandle& run, bool cancel_asked) const;
  // An end is told when the logs are whole; until then the run is FINISHING.
  std::optional<agents::Observation> AwaitLogs(const RunFacts& facts, agents::Observation end);

  // ---- clean-up
  // Does what is due for Jobs that nobody wants: backend_sweep.cc. Each is a warning for people
  // that only they can do something about.
  std::optional<v1::ClusterIssue> Sweep();
  absl::Status CleanUpAfter(const Leftover& leftover);
  // Returns whether a run's key belongs to an instance that this agent has had runs of.
  bool IsOwn(const std::string& run_key) const;

  // The Job as a watch has told of it, or else the server.
  absl::StatusOr<std::optional<JobObject>> FindJob(const std::string& name_space,
                                                   const std::string& run_key);
  // Returns whether this is still the cluster whose runs are here, as far as that can be told: what
  // another one lacks is not gone. FAILED_PRECONDITION: it is not.
  absl::Status ConfirmCluster();
  bool WasCancelAsked(const agents::RunHandle& run) const;
  // Returns whether Cancel was called for it.
  bool WasCanceled(const std::string& run_key) const;

  const KubernetesConfig config_;  // with its namespaces filled in
  hosts::LocalHost host_;
  Api api_;
  JobCalls calls_;
  NamedThings things_;

  mutable std::mutex mutex_;
  std::function<void()> wake_;                // guarded by mutex_
  std::set<std::string> canceled_;            // by Muster; guarded by mutex_
  std::set<std::string> instances_;           // of the runs that were here; guarded by mutex_
  std::map<std::string, JobChange> changes_;  // by run key; guarded by mutex_
  std::atomic<bool> log_news_ = false;
  std::atomic<bool> inventory_news_ = false;

  GivenUpRuns given_up_;
  FileRoom file_room_;
  agents::FailureLog failures_;  // of the sweep
  LogFollower logs_;
  ClusterView view_;
  QueueView queues_;
  StartQueue queue_;

  std::set<std::string> asked_for_pods_;  // of the observing thread
  // Run keys with the version of the Job that the API server itself has given, of those that seem
  // to be suspended in the midst of their work. Owned by the observing thread.
  std::map<std::string, std::string> asked_if_suspended_;
  std::set<std::string> awaiting_logs_;          // of the observing thread
  absl::Time last_full_ = absl::InfinitePast();  // of the observing thread

  // Last, so that they end first. By name: the agent's namespaces, and those where it has runs
  // still. Fixed once Adopt has returned; watched from then on.
  std::map<std::string, std::unique_ptr<NamespaceRuns>> homes_;
  NamespaceRuns nowhere_;

  std::atomic<bool> is_start_due_ = false;
  // Ends before all that it uses. Its work overlaps with any call of the contract, as launches of
  // other runs do.
  agents::WorkerLane starter_{1};
  // Both also end before all that they use, and change or delete one run at a time.
  agents::WorkerLane changer_{kChangeThreads};
  agents::WorkerLane deleter_{kDeletionThreads};
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_BACKEND_H_
