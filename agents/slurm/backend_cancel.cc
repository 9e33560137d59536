// Ends jobs and holds them back, for users and for the backend itself.
#include <utility>

#include "absl/status/status.h"
#include "agents/slurm/backend.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {

std::vector<absl::Status> SlurmBackend::End(const std::vector<agents::RunHandle>& runs) {
  std::vector<JobToEnd> jobs;
  std::set<std::string> unseen;
  {
    const MutexLock lock(mutex_);
    for (const agents::RunHandle& run : runs) {
      Track& track = tracks_[run.run_key];
      track.cancel_asked = true;
      if (track.live.has_value()) {
        jobs.push_back({run.run_key, *track.live});
      } else {
        unseen.insert(run.run_key);
      }
    }
  }
  // First those that need no look at the queue, which may have to wait.
  std::map<std::string, absl::Status> ended = EndJobs(jobs, absl::InfiniteFuture());
  jobs.clear();
  const absl::Status looked = FindAlive(unseen, &jobs);
  ended.merge(EndJobs(jobs, absl::InfiniteFuture()));
  {
    const MutexLock lock(mutex_);
    pace_.Hurry();
  }
  watcher_.WakeIn(LookPace::kSoon);
  std::vector<absl::Status> statuses;
  for (const agents::RunHandle& run : runs) {
    const auto answer = ended.find(run.run_key);
    statuses.push_back(answer != ended.end() ? answer->second : absl::OkStatus());
    if (unseen.contains(run.run_key)) statuses.back().Update(looked);
  }
  return statuses;
}

// Slurm's numbers come round: what it calls by the number of a run that was not lately seen alive
// may be anybody's. So the queue is asked for it.
absl::Status SlurmBackend::FindAlive(const std::set<std::string>& run_keys,
                                     std::vector<JobToEnd>* jobs) {
  if (run_keys.empty()) return absl::OkStatus();
  if (absl::Status status = arrays_.Load(); !status.ok()) return status;
  const absl::StatusOr<std::vector<QueueRow>> queue = SharedQueue();
  if (!queue.ok()) return queue.status();
  for (const QueueRow& row : *queue) {
    if (HasEnded(row.state.phase)) continue;
    std::string run_key = RunOf(row.name, row.job_id);
    if (run_keys.contains(run_key)) jobs->push_back({std::move(run_key), row.job_id});
  }
  return absl::OkStatus();
}

std::map<std::string, absl::Status> SlurmBackend::EndJobs(const std::vector<JobToEnd>& jobs,
                                                          absl::Time deadline) {
  // Each user's jobs as that user.
  std::map<Scheduler*, std::vector<JobToEnd>> shares;
  for (const JobToEnd& job : jobs) shares[&SchedulerOf(job.run_key)].push_back(job);
  std::map<std::string, absl::Status> answers;
  for (const auto& [scheduler, share] : shares) EndJobsOf(scheduler, share, deadline, &answers);
  return answers;
}

void SlurmBackend::EndJobsOf(Scheduler* scheduler, const std::vector<JobToEnd>& jobs,
                             absl::Time deadline, std::map<std::string, absl::Status>* answers) {
  const size_t at_once = scheduler->MaxJobsInCall();
  for (size_t i = 0; i < jobs.size(); i += at_once) {
    if (!answers->empty() && time_.Now() >= deadline) break;
    std::vector<JobId> ids;
    for (size_t j = i; j < jobs.size() && j < i + at_once; ++j) ids.push_back(jobs[j].id);
    std::vector<absl::Status> statuses = scheduler->CancelMany(ids);
    if (absl::IsPermissionDenied(statuses.front())) EndAsAgent(ids, &statuses);
    for (size_t j = 0; j < ids.size(); ++j) (*answers)[jobs[i + j].run_key].Update(statuses[j]);
  }
}

// Slurm lets an agent that is an Operator end jobs of users as whom nothing runs any more.
void SlurmBackend::EndAsAgent(const std::vector<JobId>& ids, std::vector<absl::Status>* statuses) {
  const std::vector<absl::Status> own = scheduler_->CancelMany(ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    absl::Status& status = (*statuses)[i];
    if (own[i].ok()) {
      status = absl::OkStatus();
    } else {
      status = absl::PermissionDeniedError(
          ToAbsl(fmt::format("{}; as the agent's user: {}", MessageOf(status), MessageOf(own[i]))));
    }
  }
}

// Keeps one job for each run: the one that is the run. Jobs that could not be asked about, or had
// no turn, are asked about again after the next look at the queue.
void SlurmBackend::EndStrays(std::vector<JobToEnd> strays, absl::Time deadline) {
  {
    const MutexLock lock(mutex_);
    std::vector<JobToEnd> left;
    for (JobToEnd& stray : strays) {
      if (!tracks_[stray.run_key].strays_canceled.contains(stray.id))
        left.push_back(std::move(stray));
    }
    strays = std::move(left);
  }
  const std::map<std::string, absl::Status> answers = EndJobs(strays, deadline);
  const MutexLock lock(mutex_);
  for (const JobToEnd& stray : strays) {
    const auto answer = answers.find(stray.run_key);
    if (answer != answers.end() && answer->second.ok())
      tracks_[stray.run_key].strays_canceled.insert(stray.id);
  }
}

std::vector<absl::Status> SlurmBackend::Hold(const std::vector<agents::RunHandle>& runs,
                                             bool held) {
  struct Share {
    std::vector<JobId> ids;
    std::vector<size_t> whose;
  };
  std::map<Scheduler*, Share> shares;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::optional<JobId> id = ParseJobId(runs[i].external_id);
    // The run was not submitted: Launch heeds the assignment's own cancel.
    if (!id.has_value()) continue;
    Share& share = shares[&SchedulerOf(runs[i].run_key)];
    share.ids.push_back(*id);
    share.whose.push_back(i);
  }
  std::vector<absl::Status> statuses(runs.size());
  for (const auto& [scheduler, share] : shares) {
    std::vector<absl::Status> answers = scheduler->SetHeldMany(share.ids, held);
    for (size_t i = 0; i < answers.size(); ++i) {
      const bool is_over = absl::IsNotFound(answers[i]) || absl::IsFailedPrecondition(answers[i]);
      if (!is_over) statuses[share.whose[i]] = std::move(answers[i]);
    }
  }
  return statuses;
}

}  // namespace muster::slurm
