// The Backend contract on top of a Kubernetes API server.
//
// Launch, Lookup: backend_launch.cc. Observe: backend_observe.cc. End, Fence: backend_end.cc.
// Hold: backend_hold.cc. Forget, and what is left of runs: backend_sweep.cc. Answers to people:
// backend_answers.cc. Results: results.cc.
#ifndef MUSTER_AGENTS_KUBERNETES_BACKEND_H_
#define MUSTER_AGENTS_KUBERNETES_BACKEND_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
#include "agents/kubernetes/leases.h"
#include "agents/kubernetes/logs/log_follower.h"
#include "agents/kubernetes/manifest/manifest.h"
#include "agents/kubernetes/namespace_runs.h"
#include "agents/kubernetes/settings/kubernetes_config.h"
#include "agents/kubernetes/start_queue.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// Two looks at all runs are this far apart; they keep the observations fresh and notice when a wait
// is over. A run that changes is looked at at once. The watches have the answers, so that a look
// asks the server nothing.
inline constexpr absl::Duration kObserveIntervalOfAll = absl::Seconds(2);

// These threads change Jobs, and those delete them. There are several, so that one call that hangs
// on a webhook does not delay the others, and few, so that the server is not flooded. They are
// apart, so that holds and releases, for which somebody waits, never wait for a deletion.
inline constexpr int kChangeThreads = 4;
inline constexpr int kDeletionThreads = 4;

// At most this many runs that bring files along are launched at once: each takes some 25 MiB for an
// archive of the largest size.
inline constexpr int kMaxLaunchesWithFiles = 4;

class KubernetesBackend final : public agents::Backend {
 public:
  KubernetesBackend(KubernetesConfig config, Endpoint endpoint, const std::string& state_dir);
  ~KubernetesBackend() override;

  absl::Status Probe() override;
  absl::StatusOr<v1::Inventory> Inventory() override;
  v1::ClusterChecks Check() override;
  absl::StatusOr<v1::ClusterDetails> Describe(bool with_jobs) override;
  absl::StatusOr<v1::JobPlan> Plan(const v1::JobSpec& spec, const std::string& user) override;

  absl::Status Adopt(const std::vector<agents::RunHandle>& runs) override;
  std::vector<agents::LaunchOutcome> Launch(const agents::Assignments& runs) override;
  agents::LookupOutcome Lookup(const agents::RunHandle& run) override;
  agents::ObserveOutcome Observe(const std::vector<agents::RunHandle>& runs) override;
  std::vector<absl::Status> End(const std::vector<agents::RunHandle>& runs) override;
  std::vector<absl::Status> Hold(const std::vector<agents::RunHandle>& runs, bool held) override;
  agents::FenceOutcome Fence(const agents::RunHandle& run) override;
  agents::RunOutput OpenLogs(const agents::RunHandle& run) override;
  std::vector<absl::Status> Forget(const std::vector<agents::RunHandle>& runs) override;
  // Look-ups need no grace: the API server answers from committed data, and a repeated launch makes
  // no second Job.
  agents::Capabilities capabilities() override;
  absl::Duration ObserveInterval() const override { return kObserveIntervalOfAll; }
  void SetWaker(std::function<void()> wake) override;
  bool TakeInventoryNews() override { return inventory_news_.exchange(false); }
  std::map<std::string, uint64_t> SchedulerCalls() const override { return api_.Calls(); }
  // The number of runs whose Job has been or will be changed, and that have an entry for it.
  size_t CountChanges() const;

 private:
  // Returns the number of pods that the run asks for.
  static uint32_t PodsOf(const agents::RunHandle& run);
  // Returns the namespace of the run's Job.
  std::string NamespaceOf(const agents::RunHandle& run) const;
  // The directory of the run's results as its containers see it; empty if it has none.
  std::string ResultsDirectory(const agents::RunHandle& run) const;
  // Returns the runs of a namespace; nowhere_ if the agent does not work in it.
  NamespaceRuns& HomeOf(const std::string& name_space);
  NamespaceRuns& HomeOf(const agents::RunHandle& run) { return HomeOf(NamespaceOf(run)); }
  // Makes the entry of a namespace, unless there is one. Call it before the watches begin.
  void AddHome(const std::string& name_space);
  void Wake();
  // Tells the broker that its knowledge of the cluster is out of date.
  void TellInventory();

  // ---- leases
  void AddLeases(agents::Capabilities* own);
  // INVALID_ARGUMENT: the run wants a lease, and none can be kept here.
  absl::Status CheckKeepsLease(const agent::v1::Assignment& assignment);
  // Lets the pods of a run with a lease see it. UNAVAILABLE: they cannot yet.
  absl::Status OpenLease(const agent::v1::Assignment& assignment, const std::string& name_space);

  // ---- launch
  agents::LaunchOutcome LaunchOne(const agent::v1::Assignment& assignment);
  // Notes that a launch was forbidden to make `what`, or that the namespace is missing: the pool
  // takes no jobs from now on. Returns why the run waits.
  absl::Status NoteForbidden(const std::string& run_key, Access what, const absl::Status& why);
  // Returns whether the namespace takes launches, as the server says now or has said a moment ago.
  // Tells the broker if it takes them again.
  bool MayLaunchIn(NamespaceRuns* home);
  // Answers a look-up for a run whose namespace takes no launches, without asking the server;
  // nothing: the server must be asked.
  std::optional<agents::LookupOutcome> LookUpForbidden(const agents::RunHandle& run);
  // Makes the run's objects. UNAVAILABLE: it is not known yet whether the cluster can run it. Other
  // errors: why it cannot.
  absl::StatusOr<RunObjects> Prepare(const agent::v1::Assignment& assignment,
                                     const std::vector<std::string>& file_parts);
  // Packs the files that the run brings along into `parts`. Empty result: this is done, or there
  // are none. Checks the right to make their Secrets before it fetches them.
  LaunchEnd PackBroughtFiles(const std::string& run_key, const v1::JobSpec& spec,
                             std::vector<std::string>* parts);
  LaunchEnd TakeFileRoom(const std::string& run_key, const v1::JobSpec& spec);
  // Returns the size of the archive of the files that the job brings along; 0 if it brings none;
  // none if the broker does not have the list of them. An error says why they cannot be taken.
  absl::StatusOr<std::optional<uint64_t>> BroughtBytes(const v1::JobSpec& spec) const;
  // Warns of what the job gets because of its GPUs where it leaves cores or memory open.
  void WarnOfDefaults(agent::v1::Assignment planned, agents::CheckList* checks);
  // Returns whether there is room for such an archive now, and warns if not.
  bool WarnOfFileRoom(uint64_t archive_bytes, agents::CheckList* checks) const;
  // Adds the rest of a plan: what the API server says of the objects, and when the run would start.
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
  // Starts the runs that may start now, on a thread of its own, so that observations go on
  // meanwhile.
  void WakeStarter();
  // Starts the runs that may start now: only the run `only`, or all if it is empty. A run that
  // cannot be started gets the reason, and is tried again. If the server is in trouble in a
  // namespace, no other run of it is tried.
  void StartReady(const std::string& only);
  // Returns the namespaces in which the run's Job may be: the default may have been changed since
  // its launch.
  std::set<std::string> PlacesOf(const agents::RunHandle& run) const;
  // Finds the Job of a run whose launch had an unclear answer; nothing if there is none.
  absl::StatusOr<std::optional<JobObject>> FindLaunched(const agents::RunHandle& run);
  // Returns whether the launch of that Job is complete, or its program has begun nevertheless.
  // Errors: the server could not be asked.
  absl::StatusOr<bool> IsLaunched(const JobObject& job);
  // Ends a run that waits for something that will never come, and records the server's words.
  // Errors: they could not be recorded.
  absl::Status GiveUp(const agent::v1::Assignment& run, const absl::Status& refusal);
  // Lets a Job start, through its queue if it has one, even if the run is held. Errors as of
  // JobCalls::PatchJob.
  absl::StatusOr<JobObject> SendOff(const JobObject& job, const agent::v1::Assignment& run);
  // Patches the Job, and remembers it as it is now. Also OK if it is gone.
  absl::Status ChangeJob(const ObjectName& job, const Json& patch);
  // Lets the run's Job start. NOT_FOUND: the Job is gone, or another one has its name.
  absl::Status LetGo(const agent::v1::Assignment& run);

  // ---- observe
  // Finds namespaces whose runs can be judged now. `trouble`: why none can, if there are none.
  std::set<NamespaceRuns*> ReadyHomes(absl::Status* trouble);
  // Observes the run; nothing if there is no news. Errors: the server could not be asked.
  absl::StatusOr<std::optional<agents::Observation>> Look(const agents::RunHandle& run);
  // Collects the facts of the run, and asks the server for those that no watch has. Nothing: the
  // watches are behind, and their next facts will tell.
  absl::StatusOr<std::optional<RunFacts>> Gather(const agents::RunHandle& run);
  // Returns whether a Job that Muster has given up and deleted goes on all the same.
  absl::StatusOr<bool> GoesOn(const JobObject& job);
  absl::StatusOr<std::optional<agents::Observation>> JudgeRun(const agents::RunHandle& run,
                                                              const RunFacts& facts);
  // Fills in the namespace of the run's assignment and the Kueue queue that decides there.
  StartQueue::AssignmentPtr InPlace(const agents::RunHandle& run) const;
  StartQueue::AssignmentPtr InPlace(StartQueue::AssignmentPtr run,
                                    const std::string& name_space) const;
  // Queues a run until there is room for it, and says what it waits for.
  void Queue(const agents::RunHandle& run, const RunFacts& facts, agents::Observation* seen);
  // Queues a run whose Job has not been let go, or was taken back for a hold.
  void QueueAgain(const agents::RunHandle& run, const RunFacts& facts, agents::Observation* seen);
  // Returns whether the run's Job is still suspended, or suspended again, as far as is known.
  bool StillWaits(const agents::RunHandle& run);
  // Suspends a Job again if the run is to be held, and says why that is not done yet. Runs in
  // queue_ are held there; only this function changes a Job for a hold.
  void HeedHold(const agents::RunHandle& run, const RunFacts& facts, agents::Observation* seen);
  // Returns the time since a look first noticed that the run is to be held.
  absl::Duration HoldWishedFor(const std::string& run_key);
  // Suspends the Job again, if that is still right once the server can be asked. ABORTED: the Job
  // has changed. Other errors as of JobCalls::PatchJob.
  absl::Status TakeBack(const agents::RunHandle& run);
  // The results of changes of one kind to a run's Job.
  struct Tries {
    absl::Time not_before = absl::InfinitePast();  // the next one
    std::string trouble;  // the result of the last one; empty: it was done, or there was none
  };
  struct JobChange {
    // A look first noticed at this time that the run is to be held; none if it is not.
    std::optional<absl::Time> hold_wished;
    bool is_under_way = false;
    Tries patches;
    Tries deletions;
  };
  // Changes the run's Job on a thread of its own, unless another change of it is under way, or this
  // kind of change was tried a moment ago. Returns why the last try of this kind failed; empty: it
  // succeeded, or there was none.
  std::string TryChange(const agents::RunHandle& run, Tries JobChange::*kind,
                        std::function<absl::Status()> change);
  // Takes the run for a change of its Job, until ForgetChanges. False: another one is under way.
  bool BeginChange(const std::string& run_key);
  bool IsChangeUnderWay(const std::string& run_key) const;
  // The run is no longer to be held.
  void DropHold(const std::string& run_key);
  // The run's Job will not be changed any more, or is another now. A change under way goes on.
  void ForgetChanges(const std::string& run_key);
  // The reason why a queued run waits; `seen`: what its Job says of that.
  v1::StateReason ReasonInQueue(const JobObject& job, const agents::Observation& seen) const;
  // Ends a run that cannot go on: keeps the reason and deletes the Job; once it is deleted, the run
  // has failed. Until then the run's reason says why it is not deleted yet.
  absl::StatusOr<std::optional<agents::Observation>> End(const agents::RunHandle& run,
                                                         const JobObject& job,
                                                         agents::Observation seen);
  // Deletes the Job of a run that was given up, unless its program has started after all.
  absl::Status TakeAway(const agents::RunHandle& run, const ObjectName& job);
  // Returns the end of a run whose Job is gone and whose end nobody saw.
  agents::Observation Gone(const agents::RunHandle& run, bool cancel_asked) const;
  // Returns the end once the logs are complete; until then the run is FINISHING.
  std::optional<agents::Observation> AwaitLogs(const RunFacts& facts, agents::Observation end);

  absl::Status EndOne(const agents::RunHandle& run);

  // ---- clean-up
  absl::Status ForgetOne(const agents::RunHandle& run);
  // Cleans up Jobs that no run wants (backend_sweep.cc). Returns an issue that names the Jobs about
  // which only people can decide.
  std::optional<v1::ClusterIssue> Sweep();
  absl::Status CleanUpAfter(const Leftover& leftover);
  // Returns whether a run's key belongs to an instance of which this agent has had runs.
  bool IsOwn(const std::string& run_key) const;

  // Finds the Job in what the watches have told, or else asks the server.
  absl::StatusOr<std::optional<JobObject>> FindJob(const std::string& name_space,
                                                   const std::string& run_key);
  // Checks that the server still speaks for the cluster that has the runs: a Job that another
  // cluster lacks is not gone. FAILED_PRECONDITION: it does not.
  absl::Status ConfirmCluster();
  bool WasCancelAsked(const agents::RunHandle& run) const;
  // Returns whether End was called for the run.
  bool WasCanceled(const std::string& run_key) const;

  const KubernetesConfig config_;  // with its namespaces filled in
  hosts::LocalHost host_;
  Api api_;
  JobCalls calls_;
  NamedThings things_;
  Leases leases_;

  mutable Mutex mutex_;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> canceled_ ABSL_GUARDED_BY(mutex_);            // runs that Muster canceled
  std::set<std::string> instances_ ABSL_GUARDED_BY(mutex_);           // of all runs that were here
  std::map<std::string, JobChange> changes_ ABSL_GUARDED_BY(mutex_);  // by run key
  std::atomic<bool> log_news_ = false;
  std::atomic<bool> inventory_news_ = false;

  GivenUpRuns given_up_;
  FileRoom file_room_;
  agents::FailureLog failures_;  // of the sweep
  LogFollower logs_;
  ClusterView view_;
  QueueView queues_;
  StartQueue queue_;

  std::set<std::string> asked_for_pods_;  // owned by the observing thread
  // Runs that seem to be suspended in the midst of their work, by run key, each with the version of
  // the Job that the API server itself gave. Owned by the observing thread.
  std::map<std::string, std::string> asked_if_suspended_;
  std::set<std::string> awaiting_logs_;  // owned by the observing thread
  // Runs with news that could not be looked at. Owned by the observing thread.
  std::set<std::string> untold_;
  absl::Time last_full_ = absl::InfinitePast();  // owned by the observing thread

  // The agent's namespaces, and those in which it still has runs, by name. Fixed and watched once
  // Adopt has returned. Last but for the threads, so that they end before the rest.
  std::map<std::string, std::unique_ptr<NamespaceRuns>> homes_;
  NamespaceRuns nowhere_;

  std::atomic<bool> is_start_due_ = false;
  // Ends before all that it uses. Its work may overlap with any call of the contract.
  agents::WorkerLane starter_{1};
  // These, too, end before all that they use. No two of the three work on one run at the same time.
  agents::WorkerLane changer_{kChangeThreads};
  agents::WorkerLane deleter_{kDeletionThreads};
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_BACKEND_H_
