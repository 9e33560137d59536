// The Slurm backend. It remembers only what makes its questions cheaper and its patience right: a
// new object that knows nothing but the journal's runs comes to the same answers.
#ifndef MUSTER_AGENTS_SLURM_BACKEND_H_
#define MUSTER_AGENTS_SLURM_BACKEND_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agents/core/backend.h"
#include "agents/core/check_list.h"
#include "agents/core/steady_time.h"
#include "agents/files/host_trees.h"
#include "agents/hosts/host.h"
#include "agents/slurm/arrays.h"
#include "agents/slurm/call_gate.h"
#include "agents/slurm/commands.h"
#include "agents/slurm/image_cache.h"
#include "agents/slurm/inventory.h"
#include "agents/slurm/job_users.h"
#include "agents/slurm/look_pace.h"
#include "agents/slurm/patient_reads.h"
#include "agents/slurm/pool_limits.h"
#include "agents/slurm/record_watcher.h"
#include "agents/slurm/run_files.h"
#include "agents/slurm/scheduler.h"
#include "agents/slurm/slurm.h"
#include "agents/slurm/verdict.h"
#include "sync/mutex.h"

namespace muster::slurm {

class SlurmBackend : public agents::Backend {
 public:
  SlurmBackend(SlurmConfig config, std::unique_ptr<hosts::Host> host);

  absl::Status Probe() override;
  absl::StatusOr<v1::Inventory> Inventory() override;
  v1::ClusterChecks Check() override;
  absl::StatusOr<v1::ClusterDetails> Describe(bool with_jobs) override;
  absl::StatusOr<v1::JobPlan> Plan(const v1::JobSpec& spec, const std::string& user) override;
  absl::Status Adopt(const std::vector<agents::RunHandle>& runs) override;
  std::vector<agents::LaunchOutcome> Launch(const agents::Assignments& assignments) override;
  agents::LookupOutcome Lookup(const agents::RunHandle& run) override;
  agents::ObserveOutcome Observe(const std::vector<agents::RunHandle>& runs) override;
  std::vector<absl::Status> End(const std::vector<agents::RunHandle>& runs) override;
  std::vector<absl::Status> Hold(const std::vector<agents::RunHandle>& runs, bool held) override;
  agents::FenceOutcome Fence(const agents::RunHandle& run) override;
  agents::RunOutput OpenLogs(const agents::RunHandle& run) override;
  std::vector<absl::Status> Forget(const std::vector<agents::RunHandle>& runs) override;
  agents::Capabilities capabilities() override;
  absl::Duration ObserveInterval() const override;
  void SetWaker(std::function<void()> wake) override { watcher_.SetWaker(std::move(wake)); }
  std::map<std::string, uint64_t> SchedulerCalls() const override { return gate_.Calls(); }

 private:
  // The memory of a run between calls. Times are those of time_.
  struct Track {
    bool cancel_asked = false;
    std::optional<JobId> live;              // its Slurm job, if that had not ended by the last look
    std::optional<absl::Time> ended_since;  // when squeue first told of the end
    std::optional<absl::Time> missing_since;   // when squeue first did not list it
    std::optional<absl::Time> unread_since;    // when its record could first not be read
    std::optional<absl::Time> limit_end;       // when its time limit ends it; the time of day
    std::optional<uint32_t> recorded_restart;  // the start of the job that its record is of
    // Slurm has put the job back since this start of it; a record of it, or of an earlier one, is
    // void.
    std::optional<uint32_t> void_restart;
    std::set<JobId> strays_canceled;
    Awaits awaits = Awaits::kNothing;
  };
  struct Queue {
    std::multimap<std::string, QueueRow> rows;  // by run key, or else by job name
    std::set<std::string> arrays;               // names of those that it lists any task of
    bool was_asked = false;
  };
  struct Fresh;
  struct JobToEnd {
    std::string run_key;
    JobId id;
  };

  RunPaths PathsOf(const std::string& run_key) const { return {RootOf(run_key), run_key}; }

  absl::Status CheckRunDirectoryIsWritable();

  // ---- leases, see Capabilities::renew_leases
  bool CanFence() const;
  absl::Status RenewLeases(absl::Duration remaining);
  // Nothing: the run has a lease, or needs none.
  std::optional<agents::LaunchOutcome> AwaitLease(const agent::v1::Assignment& assignment);

  // ---- users: without jobs that run as their users, all is the agent's
  // Returns the directory that has the run's.
  std::string RootOf(const std::string& run_key) const;
  // Returns Slurm as the user sees it whose job the run is.
  Scheduler& SchedulerOf(const std::string& run_key) const;
  // Returns the host as that user sees it.
  hosts::Host* HostOf(const std::string& run_key) const;
  // Returns the way to read the run's files: a user whose reads hang holds up no other's.
  PatientReads& ReadsOf(const std::string& run_key);
  // Null: jobs that bring files are not taken.
  uploads::HostTrees* TreesOf(const std::string& run_key) const;
  // Settles as whom the run is submitted; nothing if it is known. An outcome: nobody, or it cannot
  // be told now. `found`: the users by those of Muster, as far as they were looked up.
  std::optional<agents::LaunchOutcome> SettleUser(
      const agent::v1::Assignment& assignment,
      std::map<std::string, absl::StatusOr<JobUser>>* found);
  // Writes down the users of the runs, as far as they are not known and can be told now.
  void RememberUsers(const std::vector<agents::RunHandle>& runs);
  // Takes away the jobs of others that are called as runs are.
  void DropForeign(std::vector<QueueRow>* rows) const;
  // FAILED_PRECONDITION: the agent cannot see its users' jobs.
  absl::Status CheckSight(const ClusterSettings& settings);
  // Says what to do for a user whom Slurm does not know.
  void ExplainStranger(const std::string& run_key, SubmitOutcome* submitted) const;

  // ---- answers
  // What sbatch and, for a container, srun would get.
  absl::StatusOr<std::string> SubmissionText(const agent::v1::Assignment& assignment,
                                             const RunPaths& paths, const Submission& submission);
  void PlanImage(const v1::JobSpec& spec, agents::CheckList* checks);

  // ---- rights
  // Returns the agent's user on the cluster, as Slurm names users.
  std::string OwnUser() const;
  // A right that cannot be asked for keeps nobody out. An error: the partitions could not be asked.
  absl::StatusOr<Rights> AskRights(const ClusterSettings& settings);
  void RefreshRights(const ClusterSettings& settings);
  // INVALID_ARGUMENT: the job may use none of its partitions, as Slurm says now.
  absl::Status RefuseForbidden(const v1::JobSpec& spec);

  // ---- launch
  // Launches runs whose users are known.
  std::vector<agents::LaunchOutcome> LaunchSettled(const agents::Assignments& assignments);
  // The assignment with what the cluster fills in, and without excluded nodes that Slurm does not
  // know any more. INVALID_ARGUMENT: the cluster cannot take it so; UNAVAILABLE: Slurm could not be
  // asked.
  absl::StatusOr<agent::v1::Assignment> Complete(
      const agent::v1::Assignment& assignment,
      const absl::StatusOr<std::set<std::string>>& known) const;
  // Returns the excluded nodes that Slurm knows: one question for all of them, or none.
  absl::StatusOr<std::set<std::string>> KnownNodesOf(const agents::Assignments& assignments);
  // Returns the outcome of a launch that ends before its submission; nothing if the run is to be
  // submitted.
  std::optional<agents::LaunchOutcome> Prepare(
      std::map<std::string, absl::StatusOr<ImageCache::Ready>>* images, Fresh* fresh);
  std::optional<agents::LaunchOutcome> FindLaunched(const std::string& run_key,
                                                    const absl::StatusOr<hosts::FileInfo>& before);
  // Puts the cluster's paths in place of URIs. INVALID_ARGUMENT names the field.
  absl::StatusOr<agent::v1::Assignment> Resolve(const agent::v1::Assignment& assignment) const;
  // Checks that its inputs are there, and makes a directory for its results; nothing if the run may
  // be submitted.
  std::optional<agents::LaunchOutcome> PrepareStorage(const agent::v1::Assignment& assignment);
  // Lays out the files of the job as the run's working directory; nothing if the run may be
  // submitted.
  std::optional<agents::LaunchOutcome> LayOutFiles(const agent::v1::Assignment& assignment,
                                                   absl::Time deadline);
  // A spec without an image needs nothing. Nothing: jobs may have an image, or nobody can tell.
  std::optional<v1::Failure> WhyNoContainers();
  absl::StatusOr<ImageCache::Ready> PrepareImage(const v1::JobSpec& spec);
  // `image.image` is empty: the run has no container.
  absl::StatusOr<std::vector<RunFile>> FilesOf(const agent::v1::Assignment& assignment,
                                               const RunPaths& paths,
                                               const ImageCache::Ready& image,
                                               const contract::ShellVariables& shell);
  absl::Status WriteRunFiles(std::vector<Fresh>* runs, const Submission& submission);
  absl::StatusOr<Submission> SubmissionOf(std::vector<Fresh>* runs);
  // Gives the tasks of one array of Slurm's their ids there.
  absl::Status NumberTasks(std::vector<Fresh>* runs);
  bool LearnMaxArraySize(const std::vector<Fresh>& refused);
  std::optional<agents::LaunchOutcome> AwaitOtherParts(const std::vector<Fresh>& part);
  void SubmitAll(std::vector<Fresh> runs, std::vector<agents::LaunchOutcome>* outcomes);
  std::optional<SubmitOutcome> Submit(std::vector<Fresh>* part,
                                      std::vector<agents::LaunchOutcome>* outcomes);
  void Answer(const std::vector<Fresh>& runs, const SubmitOutcome& submitted,
              std::vector<agents::LaunchOutcome>* outcomes);
  void RemoveScripts(const std::vector<Fresh>& runs);
  agents::LaunchOutcome OutcomeOf(const agent::v1::Assignment& assignment,
                                  const SubmitOutcome& submitted, const JobId& id);
  // The answer to a submission whose error no table holds, once Slurm is seen not to have it.
  std::vector<agents::LaunchOutcome> RefuseUnknown(const std::vector<Fresh>& runs,
                                                   const SubmitOutcome& submitted);

  // ---- look-up
  // Returns the run whose job is called so; the name itself if it is no known array's task.
  std::string RunOf(const std::string& name, const JobId& id) const;
  // Asks for the whole queue. If the list was cut off, tasks of Muster's that it may have are in
  // it, in an unknown state.
  absl::StatusOr<std::vector<QueueRow>> WholeQueue();
  // Returns the whole queue, as it was at most a second ago and not before the last submission.
  absl::StatusOr<std::vector<QueueRow>> SharedQueue();
  agents::LookupOutcome LookUpInHistory(const agents::RunHandle& run,
                                        const std::vector<ArrayPlace>& places,
                                        const std::vector<QueueRow>& queue,
                                        std::optional<JobId>* id);
  // Returns the Slurm job that owns the run: nothing if none has claimed it yet, or if one died
  // over its claim; an error if that cannot be read.
  absl::StatusOr<std::optional<JobId>> ReadOwner(const RunPaths& paths);
  // Returns the present time by the clock that dates the run's files: a file server's, perhaps.
  absl::StatusOr<absl::Time> TimeOfFiles(const RunPaths& paths);
  // Takes away a claim that some job died over, because, as far as one can tell, no job has claimed
  // the run. UNAVAILABLE: one has by now, or it cannot be told.
  absl::Status TakeDeadClaim(const RunPaths& paths);
  // Returns the time from which on Slurm's history may have a job of the run.
  static absl::Time HistoryBegin(const agents::RunHandle& run);
  // Returns the rows without the submissions that were refused.
  absl::StatusOr<std::vector<HistoryRow>> HistoryByName(const agents::RunHandle& run,
                                                        const std::string& name);
  // Returns the jobs of the run that are not it.
  static std::vector<JobToEnd> StraysOf(const std::string& run_key, const JobId& id,
                                        const std::vector<QueueRow>& rows);

  // ---- observation
  // Observes runs whose users are known.
  agents::ObserveOutcome ObserveSettled(const std::vector<agents::RunHandle>& runs);
  bool IsQueueDue() const;
  // Sets the time to the next look, after a look at the runs. `observations` are what they led to.
  void SetPace(const std::vector<RunFacts>& facts, bool asked,
               const std::vector<agents::Observation>& observations);
  absl::StatusOr<Queue> AskQueue();
  void NoteWhatRuns(const std::vector<QueueRow>& rows, absl::Time now);
  // Leaves out jobs of users: their records do not decide, and each look would be theirs.
  void WatchRecords(bool active) { watcher_.SetActive(active && users_ == nullptr); }
  // Nothing: there is no record. An error: it is unknown whether there is one, or what it says.
  using MaybeRecord = absl::StatusOr<std::optional<ExitRecord>>;
  // Reads the records, by run key; a run without a record is left out.
  std::map<std::string, MaybeRecord> ReadRecords(const std::vector<agents::RunHandle>& runs);
  // Reads those of runs whose jobs are seen to have ended: each user's are read as that user.
  std::map<std::string, MaybeRecord> ReadUsersRecords(const std::vector<agents::RunHandle>& runs,
                                                      const Queue& queue);
  // Reads those of runs whose files are in one directory.
  void ReadInto(const std::vector<std::string>& keys, std::map<std::string, MaybeRecord>* records);
  // Returns the reason that a missing record proves nothing: the run's own files are missing, too,
  // and the file system may not be mounted. Empty: they are there.
  std::string WhyAbsenceIsNoProof(const std::string& run_key);
  RunFacts Gather(const agents::RunHandle& run, const std::optional<Queue>& queue,
                  MaybeRecord record, std::vector<JobToEnd>* strays);
  // Returns whether the run was submitted as a task of one of them.
  bool IsTaskOfAny(const std::string& run_key, const std::set<std::string>& array_names) const;
  void ChooseRow(const agents::RunHandle& run, const std::vector<QueueRow>& rows, RunFacts* facts,
                 std::vector<JobToEnd>* strays);
  void DropVoidRecord(RunFacts* facts);
  void MarkSince(RunFacts* facts);
  void MarkLimit(const agents::RunHandle& run, RunFacts* facts);
  // Returns the bytes of memory that the run asks for on each node; 0 if Slurm's own default holds,
  // or it is counted otherwise.
  uint64_t MemoryLimitOf(const agents::RunHandle& run) const;
  void AskHistory(const std::vector<agents::RunHandle>& runs, absl::Time deadline,
                  std::vector<RunFacts>* facts);
  // Returns Slurm's own lines in the output of the run's job.
  std::string SlurmOutputOf(const std::string& run_key, const JobId& job_id) const;
  void AskAccounting(Scheduler* scheduler, const std::vector<RunFacts*>& facts, absl::Time since,
                     absl::Time deadline);
  void AskController(const std::vector<RunFacts*>& facts, absl::Time deadline);
  std::string ReadSlurmOutput(const std::string& run_key, const JobId& job_id);
  // Hands Slurm's words about memory on to the run's log.
  void HandOn(const RunFacts& run);

  // ---- usage, see Capabilities::usage_of
  absl::StatusOr<agents::UsageByRun> UsageOf(const std::vector<agents::RunHandle>& runs);

  // ---- signals, see Capabilities::send_signal
  absl::Status SendSignal(const agents::RunHandle& run, const agents::RunSignal& signal);
  // Says to the run's batch script what the next signal means; `number` is the one to send for it.
  absl::Status TellBatchScript(const std::string& run_key, SignalTo to, int* number);

  // ---- forgetting
  // Forgets runs whose files are in one directory.
  absl::Status ForgetOfUser(const std::vector<agents::RunHandle>& runs);

  // ---- ends that Slurm does not bring about by itself
  // The jobs of these runs that have not ended, as the queue tells them.
  absl::Status FindAlive(const std::set<std::string>& run_keys, std::vector<JobToEnd>* jobs);
  // Ends the jobs in as few calls as possible. Returns the results by run; runs that had no turn
  // before the deadline have none, but a first call is always made.
  std::map<std::string, absl::Status> EndJobs(const std::vector<JobToEnd>& jobs,
                                              absl::Time deadline);
  void EndJobsOf(Scheduler* scheduler, const std::vector<JobToEnd>& jobs, absl::Time deadline,
                 std::map<std::string, absl::Status>* answers);
  // `statuses` say what kept the user from ending them.
  void EndAsAgent(const std::vector<JobId>& ids, std::vector<absl::Status>* statuses);
  void EndStrays(std::vector<JobToEnd> strays, absl::Time deadline);
  // Takes the run's claim, so that no job of it can begin any more. Errors: a job has it, or it
  // could not be taken.
  absl::Status TakeClaim(const std::string& run_key);
  // Judges by what Slurm tells of the job that has claimed the run.
  agents::FenceOutcome FenceOwner(const agents::RunHandle& run, const JobId& owner);

  // These are constant after construction.
  const SlurmConfig config_;
  // Null: all jobs run as the agent's user.
  const std::unique_ptr<JobUsers> users_;
  const std::unique_ptr<hosts::Host> host_;
  PatientReads reads_;  // thread-safe; for looks, look-ups and claims
  // The clock for intervals and graces; times that others are told are of the time of day.
  const agents::SteadyTime time_;

  // They have locks of their own.
  mutable CallGate gate_;
  Commands commands_;
  Arrays arrays_;
  const std::unique_ptr<Scheduler> scheduler_;
  // Null: jobs that bring files are not taken.
  std::unique_ptr<uploads::HostTrees> trees_;
  ImageCache images_;
  RecordWatcher watcher_;
  // The host that has what runs leave, for those who only have its paths; null means host_.
  std::unique_ptr<hosts::Host> output_host_;

  size_t next_shown_ = 0;  // the next job that slurmctld is asked about; Observe's own

  mutable Mutex mutex_;
  uint64_t lease_number_ ABSL_GUARDED_BY(mutex_) = 0;            // the last one that was written
  std::map<std::string, Track> tracks_ ABSL_GUARDED_BY(mutex_);  // by run key
  // Runs forgotten since the latest look, which may have noted them once more.
  std::set<std::string> forgotten_ ABSL_GUARDED_BY(mutex_);
  GpuTypes gpu_types_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::Pool> pools_ ABSL_GUARDED_BY(mutex_);  // as they were last seen; empty before
  Rights rights_ ABSL_GUARDED_BY(mutex_);  // likewise, with the settings that they were asked with
  ClusterSettings rights_settings_ ABSL_GUARDED_BY(mutex_);
  absl::Time rights_time_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // by time_
  bool keeps_accounting_ ABSL_GUARDED_BY(mutex_) = true;
  std::set<std::string> taken_limits_ ABSL_GUARDED_BY(mutex_);  // see LimitsFile
  size_t max_array_size_ ABSL_GUARDED_BY(mutex_) = 0;           // before it is known: no arrays
  bool has_containers_ ABSL_GUARDED_BY(mutex_) = false;         // srun has been seen to know them
  // The times, by time_, when the answer to the last submission came (see RunFacts::none_runs_for),
  // and when that was last looked at.
  absl::Time last_submit_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time none_runs_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Time none_runs_looked_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time last_queue_time_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // by time_
  absl::Duration last_queue_duration_ ABSL_GUARDED_BY(mutex_);
  LookPace pace_ ABSL_GUARDED_BY(mutex_);
  absl::Status last_queue_status_ ABSL_GUARDED_BY(mutex_);

  // Guards the queue that look-ups share; held while Slurm is asked, so that look-ups that come
  // meanwhile wait for it.
  Mutex shared_queue_mutex_;
  std::vector<QueueRow> shared_queue_ ABSL_GUARDED_BY(shared_queue_mutex_);
  // The time, by time_, when it was asked for.
  absl::Time shared_queue_time_ ABSL_GUARDED_BY(shared_queue_mutex_) = absl::InfinitePast();
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_BACKEND_H_
