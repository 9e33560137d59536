// The insides of Core; one file for each kind of input. Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_IMPL_H_
#define MUSTER_BROKER_CORE_IMPL_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/core/accounts.h"
#include "broker/core/cluster.h"
#include "broker/core/core.h"
#include "broker/core/dependencies.h"
#include "broker/core/fit.h"
#include "broker/core/groups.h"
#include "broker/core/job_table.h"
#include "broker/core/placement/choice.h"
#include "broker/core/placement/preemption.h"
#include "broker/core/refits.h"
#include "broker/core/refused_jobs.h"
#include "broker/core/request_memory.h"
#include "broker/core/retry_queue.h"
#include "broker/core/run_usage.h"
#include "broker/core/submit_times.h"
#include "broker/core/waiting_tree.h"
#include "contract/place_limits.h"
#include "contract/refusals.h"

namespace muster::core {

class Core::Impl {
 public:
  Impl(Options options, Restored restored);

  void Handle(Input input, absl::Time now, Output* out);
  bool PlaceJobs(absl::Time now, Output* out);
  std::vector<ShownCluster> TakeShownClusters(absl::Time now);
  std::vector<ShownUse> TakeShownUses() { return accounts_.TakeShown(); }
  uint64_t last_sequence() const { return next_sequence_ - 1; }
  Counters counters() const;
  absl::Status CheckInvariants() const;

 private:
  // The work of one call so far. Jobs and runs are written once at its end, however often they
  // changed in it.
  struct Step {
    absl::Time now;
    Output* out;
    std::vector<uint64_t> jobs;                    // changed; may repeat
    std::vector<std::pair<Cluster*, RunId>> runs;  // changed; may repeat
    bool has_transitions = false;
    // The index, in the changes, of a run's latest transition, if the run has not changed since.
    absl::flat_hash_map<RunId, size_t> moved = {};
    // Runs that have changed after their latest transition.
    absl::flat_hash_set<RunId> changed = {};
    // Runs that were given up: nothing more of them is taken.
    absl::flat_hash_set<RunId> given_up = {};
    // Jobs that fail because of the end of another one, by number: that one.
    absl::flat_hash_map<uint64_t, uint64_t> failed_dependency = {};
    // The use of runs that have ended.
    RunUsage usage = {};
  };

  // One item of a submit, looked at but not yet accepted.
  struct Candidate;
  // The items of one submit.
  struct Batch;

  // ---- step.cc
  Step Begin(absl::Time now, Output* out);
  // Adds a step to the job's history; fills in its numbers, its time and the job's state.
  void Record(Step& step, uint64_t id, Job& job, v1::Transition transition);
  void Finish(Step& step);
  void PutTouchedJob(Step& step, uint64_t id);
  void PutTouchedRun(Step& step, Cluster* cluster, RunId id);

  // ---- apply.cc
  // The queues and counters that a job is part of.
  struct Standing {
    bool is_queued = false;
    bool is_in_line = false;     // its group's line has it
    Cluster* cluster = nullptr;  // the cluster that has its run, which has not ended
    bool is_held = false;        // its run is held there
    placement::Phase phase = placement::Phase::kNone;  // its part in the use of that cluster
  };
  // Changes the state of a job; there is no other way. Takes the job to its next stage, moves it
  // between queues and counters, and records the step. If the change is illegal, it is counted,
  // nothing changes, and the result is false.
  bool Apply(uint64_t id, Job& job, const JobChange& change, v1::Transition transition, Step& step);
  Standing StandingOf(uint64_t id, const Job& job) const;
  // Moves the job between queues and counters to its present standing.
  void Recount(uint64_t id, const Job& job, const Standing& before);

  // ---- restore.cc
  void RestoreClusters(std::vector<PutCluster> clusters);
  void RestoreJobs(std::vector<Requirements> requirements, const std::vector<std::string>& users,
                   const std::vector<LiveJob>& jobs);
  // Returns the group of the user's jobs with these requirements. `latest`: that of the last call
  // with them, which has them then; null: there was none.
  Group* RestoreGroup(const std::string& user, Requirements* requirements, Group** latest);
  void RestoreRefusals(const LiveJob& saved);
  void RestoreRuns(std::vector<PutRun> runs);
  void RestoreRequests(const std::vector<RememberedRequest>& requests);

  // ---- submit.cc
  void On(Submit& in, Step& step);
  std::optional<contract::Refusal> Examine(const SubmitItem& item, Batch& batch);
  // Answers a repeat of a RerunJobs; returns nothing if it is not a repeat.
  std::optional<SubmitReply> AnswerRepeat(const Submit& in) const;
  // Refuses the first new item whose files are not all here.
  static std::optional<contract::Refusal> CheckFiles(const std::vector<SubmitItem>& items,
                                                     const std::vector<Candidate>& candidates);
  // Makes each new task an array of its own if other tasks of its array were accepted before: the
  // number of an array is told from the place of a task in it, and theirs do not follow one
  // another. The tasks of an array must be one after the other.
  static void LeaveSplitArrays(std::vector<Candidate>* candidates);
  std::optional<contract::Refusal> CheckRoom(const std::vector<Candidate>& candidates) const;

  // ---- quotas.cc
  void On(SetShares& in, Step& step);
  void On(KeepUse& in, Step& step);
  // Refuses a submit with which a project, or a user, would have more queued jobs than it may.
  std::optional<contract::Refusal> CheckQueueQuotas(const Submit& in,
                                                    const std::vector<Candidate>& candidates) const;
  // Refuses a job that needs more GPUs than a quota allows in all.
  std::optional<contract::Refusal> CheckBeyondQuota(const Requirements& requirements,
                                                    const std::string& user) const;
  // Counts a job that begins or ends to wait, and a run that begins or ends.
  void CountInAccounts(const Job& job, const Standing& before, const Standing& now);
  // Once a minute: stores what was used, and brings the order of service up to now.
  void KeepAccounts(Step& step);
  // Takes over what the connected clusters have, if that has changed.
  void RecountCapacity();

  uint64_t Accept(Candidate& candidate, const Submit& in, Step& step);
  std::optional<contract::Refusal> CheckNamedClusters(const v1::JobSpec& spec) const;
  std::optional<contract::Refusal> CheckPlaceable(const v1::JobSpec& spec,
                                                  const Requirements& requirements) const;

  // Refuses a new job that depends on one whose end is not known here.
  std::optional<contract::Refusal> CheckEnds(const Submit& in,
                                             const std::vector<Candidate>& candidates) const;
  // Puts the numbers of jobs of the same call in place of their requests.
  static void NameDependencies(const std::vector<Candidate>& candidates, Candidate* candidate);

  // ---- depend.cc
  using Ends = absl::flat_hash_map<uint64_t, v1::JobState>;
  // Lets a new job wait for the jobs that it depends on, as far as they have not ended as it needs.
  void Await(uint64_t id, const v1::JobSpec& spec, const Ends& ends);
  // Does so after a restart.
  void AwaitAgain(const LiveJob& saved);
  // Puts jobs into line, or fails them, after the ends of jobs that they depend on.
  void JudgeDependents(Step& step);
  absl::Status CheckDependencies() const;

  // ---- cancel.cc
  void On(Cancel& in, Step& step);
  void CancelJob(uint64_t id, Job& job, const v1::Evidence& evidence, Step& step,
                 std::map<SessionId, std::vector<std::string>>* cancellations);
  void SendCancellations(SessionId session, const std::vector<std::string>& run_keys, Step& step);

  // True if the job is as it was when a filter chose it as the i-th one.
  static bool IsAsChosen(const Job& job, const std::vector<uint64_t>& chosen_at, size_t i) {
    return chosen_at.empty() || job.sequence() == chosen_at[i];
  }

  // ---- edit.cc
  void On(Edit& in, Step& step);
  std::optional<contract::Refusal> CheckEdit(const Edit& in) const;
  void RememberEdit(uint64_t id, uint64_t job_sequence);

  // ---- delete_jobs.cc
  void On(DeleteJobs& in, Step& step);

  // ---- forget_cluster.cc
  void On(ForgetCluster& in, Step& step);
  std::optional<contract::Refusal> CheckForget(const ForgetCluster& in) const;
  // Ends the clusters that no lane has any more. Lanes without groups must be gone.
  void DropForgotten();

  // ---- cordon.cc
  void On(SetCordon& in, Step& step);

  // ---- hold.cc
  using KeysBySession = std::map<SessionId, std::vector<std::string>>;
  void On(Hold& in, Step& step);
  std::optional<contract::Refusal> CheckHold(const Hold& in) const;
  void HoldJob(uint64_t id, Job& job, const Hold& in, Step& step, KeysBySession* keys);
  // Records that the run has begun although it was to be held: the hold came too late.
  void EndLateHold(const v1::Run& run, RunId id, Job& job, Step& step);
  bool Waits(uint64_t id, const Job& job) const;
  void TellOfHold(uint64_t id, const Job& job, KeysBySession* keys) const;
  void SendHolds(SessionId session, const std::vector<std::string>& run_keys, bool held,
                 Step& step);

  // ---- withdraw.cc
  void On(Move& in, Step& step);
  // True if the job has a run that can be asked back: its cluster has not begun with it, and what
  // is known of it is later than any earlier hold.
  bool CanWithdraw(uint64_t id, const Job& job) const;
  // Asks for the run. It is held first, and ended once its agent has told that it is held.
  void Withdraw(uint64_t id, Job& job, v1::WithdrawalCause cause, const std::string& user,
                v1::Evidence evidence, Step& step);
  // Ends the run if its agent has told that it is held, so that it cannot begin.
  void EndIfHeld(const Cluster& cluster, const v1::Run& run, Step& step);
  static bool IsKnownToBeHeld(const v1::Run& run);
  // Notes that a run has begun although it was to come back: it goes on.
  void EndLateWithdrawal(const v1::Run& run, RunId id, Job& job, Step& step);
  // Takes the withdrawal off a job for which it is over.
  void DropWithdrawal(uint64_t id, const Job& job, Step& step);
  // Asks back the runs that wait on clusters that are drained.
  void Drain(Cluster* cluster, Step& step);
  // Asks back runs that wait for resources while another cluster has room for them.
  void MoveToRoom(Step& step);
  // Returns a cluster that has room for the job, and takes runs; null: none has. Not one of
  // `taken`.
  Cluster* FindRoomFor(uint64_t id, const Job& job, absl::Time now,
                       const absl::flat_hash_set<Cluster*>& taken) const;

  // ---- retry.cc
  // The number of its runs that count for its rule: those that neither came back, nor were
  // preempted, nor were given up with their clusters.
  static uint32_t CountedRuns(const Job& job) {
    return uint32_t{job.runs()} - job.returned() - job.fail_overs();
  }
  // True if the job gets another run after this one, which has ended, if it has runs left.
  bool WantsAnotherRun(const v1::Run& ended, const Job& job) const;
  bool HasRunsLeft(const Job& job) const;
  // The earliest time of its next run, if there is one.
  absl::Time NextRunTime(const Job& job, const Step& step) const;
  // Writes down why the job, which is QUEUED again, gets another run.
  void TellOfRetry(uint64_t id, Job& job, const v1::Run& ended, absl::Time next_run, Step& step);
  void RecordRetry(uint64_t id, Job& job, std::string why, Step& step);
  // Puts the jobs whose time has come into line.
  void EndWaits(Step& step);
  // Moves all waits by as much as the clock was set, so that what is left of each stays the same.
  void ShiftWaits(absl::Duration by, Step& step);

  // ---- refuse.cc
  // True if another cluster than these, one that is not away for long, could ever take the job.
  bool CouldGoElsewhere(Requirements job, const std::vector<std::string>& refusing,
                        absl::Time now) const;
  // True if the run was refused and another cluster may take its job; it is then remembered.
  bool GoesElsewhere(const v1::Run& run, uint64_t id, const Job& job, absl::Time now);
  // Puts the job into the group for which those clusters are ruled out that are for the job.
  void RuleOut(uint64_t id, Job& job, absl::Time now);
  void EndRuledOut(absl::Time now);
  void TellOfRefusal(uint64_t id, Job& job, const v1::Run& refused, Step& step);
  // The number of its runs that came back or were preempted.
  uint32_t ReturnsOf(uint64_t id, const Job& job) const;

  // ---- leases.cc, see leases.h
  // The cluster has been heard: its leases end later.
  void ExtendLease(Cluster* cluster, absl::Time now);
  // Answers a heartbeat of an agent that keeps leases.
  void RenewLeases(Cluster* cluster, SessionId session, uint64_t heartbeat_number, Step& step);
  // After a restart, leases that were given before it last as long as if they were given now.
  void BeginLeases(absl::Time now);
  // Gives up the runs of lost clusters whose jobs want another run, once that is allowed.
  void FailOver(Step& step);
  // Returns whether all are given up that were to be; takes the others from `left`.
  bool GiveUpRuns(Cluster* cluster, LossRule rule, int* left, Step& step);
  void GiveUpRun(Cluster* cluster, RunId id, v1::Run& run, Step& step);

  // ---- clusters.cc
  // Call this when something that a ClusterView shows has changed.
  void Show(Cluster* cluster);
  // Call this instead when the agent has said something new of itself.
  void ShowSaved(Cluster* cluster);
  absl::Status CheckShown(const Cluster& cluster) const;
  // Returns null if there is no such cluster.
  Cluster* FindCluster(std::string_view name) const;
  Cluster* AddCluster(std::string name);
  void PutNow(const Cluster& cluster, Step& step);
  // Returns what each cluster lacks, the nearest first; for a Slurm-only job, of Slurm clusters
  // alone.
  std::vector<v1::StateReason> LacksOf(const Requirements& requirements) const;
  contract::refused::Clusters KnownClusters() const;

  // ---- sessions.cc
  void On(AgentConnected& in, Step& step);
  void On(AgentBeat& in, Step& step);
  void On(AgentGone& in, Step& step);
  void On(Tick& in, Step& step);
  std::optional<contract::Refusal> CheckIsNewest(const agent::v1::AgentHello& hello) const;
  // The job of a run of this broker's; nothing: it is another's.
  std::optional<uint64_t> OwnJob(const std::string& run_key) const;
  // Tells whether the number is one that this database has not given out.
  bool IsUnknownYet(uint64_t job) const;
  void LeaveOutNumbersOf(const agent::v1::AgentHello& hello);
  // Says that jobs of the cluster would come back to this broker.
  std::optional<contract::Refusal> CheckLoop(const std::string& cluster,
                                             const v1::Inventory& inventory) const;
  std::optional<contract::Refusal> CheckIdentity(const agent::v1::AgentHello& hello,
                                                 const Cluster* cluster) const;
  void Welcome(Cluster* cluster, SessionId session, agent::v1::AgentHello& hello, Step& step);
  // Sees whether the process that another one had followed is back.
  static void NoteProcess(Cluster* cluster, uint64_t process, absl::Time now);
  // Sends the difference between the runs that the agent holds and those that it should hold; runs
  // that it lacks are only noted, for ResendRuns.
  void Reconcile(Cluster* cluster, const agent::v1::AgentHello& hello, Step& step);
  // Assigns again at most `limit` of the runs that agents have lost; returns their number.
  int ResendRuns(int limit, Step& step);
  void TakeInventory(Cluster* cluster, v1::Inventory& inventory, Step& step);
  void Disconnect(Cluster* cluster, Step& step);
  void CloseSession(Cluster* cluster, std::optional<contract::Refusal> why, Step& step);
  // Returns the cluster that speaks through this session. Null, and counted, if the session is not
  // the current one.
  Cluster* CurrentCluster(SessionId session);

  // ---- events.cc
  void On(AgentReported& in, Step& step);
  void ApplyEvent(Cluster* cluster, agent::v1::RunEvent& event, Step& step);
  // Stores the usage of a run that the core does not hold any more.
  void TakeLateUsage(const Cluster& cluster, RunId id, agent::v1::RunEvent& event, Step& step);
  // Takes the job to the state that its run now implies, or back to the queue for another run, and
  // records why: `transition` has the evidence and the kind.
  void MoveJob(v1::Run& run, RunId id, v1::Transition transition, Step& step);
  // Counts what a run that has just ended has used.
  void CountUsage(const v1::Run& run, const Job& job, Step& step) const;

  // ---- starts.cc
  // The part of a run that expectations of its cluster are made from.
  struct RunLook {
    bool has_ended = false;
    bool has_started = false;
    bool queues = false;  // the scheduler says that it waits for room
  };
  static RunLook LookAt(const v1::Run& run);
  // Takes over what a report has changed, in a run that looked so before it.
  void NoteReport(Cluster* cluster, RunId id, const v1::Run& run, const RunLook& before,
                  absl::Time now);
  absl::Status CheckLoads() const;
  // Says how many runs may wait there, once its kind is known.
  void NotePlaces(Cluster* cluster) const;

  // ---- refit.cc
  void On(SetPlaceLimits& in, Step& step);
  // Returns the clusters whose last inventory fits, connected or not.
  ClusterSet FittingClusters(const Requirements& requirements) const;
  // Returns the group of such jobs of the user, and makes it if there is none yet.
  Group* GroupFor(Requirements requirements, const std::string& user);
  // Counts one job of the group less, because it has ended; a group without jobs is removed.
  void LeaveGroup(uint32_t id);
  // Puts the group into the lane that is right now. Takes the costs from the budget.
  void Refit(Group* group, int64_t* budget);
  // Continues the pass over all groups until the budget is used up.
  void RefitSome(int64_t* budget);

  // ---- place.cc
  struct Contender;
  void AssignNext(uint64_t id, const placement::Choices::Choice& choice, Step& step,
                  std::map<SessionId, std::vector<agent::v1::Assignment>>* assignments);
  // Passes the queue over for as long as a quota speaks against its jobs. True: one does.
  bool ParkIfOverQuota(UserQueue* queue);
  // Returns the first cluster that takes runs, from the place `from` on, which it moves there.
  static Cluster* FirstWithRoom(const ClusterSet& fits, size_t* from);

  // ---- keep_room.cc
  // Brings the room that is kept for jobs up to now: drops what is over, and looks for jobs that
  // have waited long.
  void KeepRoom(Step& step);
  // True if a quota of its project or user lets none of its jobs start.
  bool IsAtQuota(const UserQueue& queue) const;
  // True if the job still waits for the room.
  bool WaitsForKept(const Cluster& cluster, const placement::KeptRoom& kept) const;
  void DropKeptThatIsOver();
  // Returns the first in the order of those that have waited so long since their submit: runs on
  // clusters without a queue of their own, and jobs here.
  struct LongWait;
  std::vector<LongWait> FindWaits(absl::Time now, absl::Duration at_least) const;
  static std::vector<LongWait> FirstOfEachPool(std::vector<LongWait> waits);
  void FindWaitsOn(Cluster* cluster, absl::Time now, absl::Duration at_least,
                   std::vector<LongWait>* found) const;
  // Keeps room for the job where it is expected first, if a place may keep some for it.
  void KeepRoomFor(const LongWait& wait, absl::Time now);
  // Returns the room that the cluster would keep for such a job; nothing: it keeps none, or keeps
  // it for one that comes first.
  std::optional<placement::KeptRoom> RoomToKeep(const Cluster& cluster, const LongWait& wait,
                                                absl::Time now) const;
  void ExpectStart(const Cluster& cluster, const Requirements& job, absl::Time now,
                   placement::KeptRoom* kept) const;
  // Puts it in place of what is kept in the same pool.
  void Keep(Cluster* cluster, placement::KeptRoom kept, absl::Time now);
  void KeptChanged(Cluster* cluster);
  // A run has been assigned to the cluster.
  void NoteBesideKept(Cluster* cluster, uint64_t id, const Job& job, absl::Time now);
  absl::Status CheckKept() const;

  // ---- preempt.cc
  // True if the run of the job may end for one of that priority.
  bool MayBePreempted(uint64_t id, const Job& job, int32_t priority) const;
  // True if something there could end for the job.
  bool CanPreemptIn(const Cluster& cluster, const LongWait& wait) const;
  // Returns the jobs whose runs have to end for the job to find its nodes; nothing: not enough.
  std::optional<std::vector<uint64_t>> FindRunsToEnd(const Cluster& cluster,
                                                     const LongWait& wait) const;
  // Ends the fewest runs of one cluster, and keeps the room for the job. False: none would help.
  bool PreemptFor(const LongWait& wait, Step& step);
  // Does so for a job that is next and that no cluster has room for.
  bool PreemptForNext(const Group& group, const Turn& turn, Step& step);
  void PreemptForThoseWhoWait(Step& step);
  // Keeps the room of runs that are being ended for the jobs that they end for, after a restart.
  void KeepRoomForPreemptors(absl::Time now);
  void Preempt(uint64_t id, Job& job, const Turn& by, Step& step);
  // The job's run begins to run there, or does so no longer.
  void CountPreemptible(const Job& job, Cluster* cluster, int difference);

  // ---- unblock.cc
  // Something there has ended, begun or changed, so that it may have room, or a place to wait.
  void Open(Cluster* cluster);
  // True if one of the clusters has a place to wait at.
  static bool HasPlaceToWait(const ClusterSet& fits, absl::Time now);
  // True if the first job of the list may have one: some that there is has no job that comes first.
  bool MayWait(const Lane& lane, const ProjectQueue::List& blocked, absl::Time now) const;
  // Goes on with the pass over blocked queues until the budget is used up. Returns whether all have
  // been looked at since clusters have been opened.
  bool UnblockSome(absl::Time now, int64_t* budget);
  // True if a cluster of the pass has room for the first job of the queue.
  bool MayGo(const UserQueue& queue, absl::Time now, int64_t* budget) const;

  // ---- queue upkeep, in core.cc
  // True if a QUEUED job stands in its group's line: it is not held, its time has come, and it
  // waits for no other job.
  bool IsReady(uint64_t id, const Job& job) const;
  void LineUp(uint64_t id, const Job& job);
  void StepAside(uint64_t id, const Job& job);

  // ---- invariants.cc
  // `in_line`: number of ready jobs; `by_group`: number of jobs of each group.
  absl::Status CheckWaiting(uint64_t in_line,
                            const absl::flat_hash_map<uint32_t, uint64_t>& by_group) const;
  // Checks the counts of the accounts against all jobs.
  absl::Status CheckAccounts() const;
  // Checks the lane of a group that is known to be in the right one.
  absl::Status CheckLaneOf(const Group& group) const;

  const Options options_;
  const std::string instance_;
  const uint64_t broker_epoch_;
  bool broker_epoch_put_ = false;
  uint64_t next_job_id_;
  // Numbers that an agent has runs of, and that this database has never given out; none at first.
  uint64_t lost_from_ = 0, lost_until_ = 0;
  uint64_t next_sequence_;

  JobTable jobs_;
  uint64_t queued_ = 0;
  RetryQueue retries_;
  RefusedJobs refused_;
  absl::flat_hash_map<uint64_t, v1::Withdrawal> withdrawals_;  // by job
  // Runs that wait while another cluster has room for them, and since when.
  absl::flat_hash_map<RunId, absl::Time> could_start_;
  Dependencies dependencies_;
  Groups groups_;
  Accounts accounts_;
  WaitingTree waiting_{&accounts_};
  bool is_capacity_stale_ = true;
  uint64_t entries_ = 0;  // entries of contenders, of all rounds
  absl::Time accounts_kept_ = absl::InfinitePast();
  std::shared_ptr<const contract::PlaceLimits> limits_;  // never null
  Refits refits_;
  Unblocking unblocking_;
  SubmitTimes submit_times_;
  std::vector<Cluster*> keeping_;  // clusters that keep room for jobs
  absl::Time looked_for_long_waits_ = absl::InfinitePast();
  placement::PreemptionLooks preempting_;
  RequestMemory requests_;
  // The job_sequence of ended jobs that were edited lately, deleted jobs among them. Until the
  // readers of the store see an edit, only this tells that another edit, decided before, is out of
  // date.
  absl::flat_hash_map<uint64_t, uint64_t> edited_;
  std::deque<uint64_t> edited_order_;

  std::map<std::string, Cluster*, std::less<>> clusters_by_name_;
  std::vector<std::unique_ptr<Cluster>> clusters_;  // by index; null: the first, and free places
  // Clusters that are forgotten and still in lanes, in the order of their changed_at.
  std::deque<Cluster*> leaving_;
  std::vector<ClusterIndex> free_indexes_;  // of clusters that were forgotten
  absl::flat_hash_map<SessionId, Cluster*> sessions_;
  std::vector<std::string> to_show_;  // names of clusters that have changed, or are forgotten

  Counters counted_;  // those since the start
};

v1::Evidence BrokerEvidence(std::string detail, absl::Time now);
v1::Evidence UserEvidence(const contract::UserRequest& request, absl::Time now);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_IMPL_H_
