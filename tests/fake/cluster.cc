#include "tests/fake/cluster.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace muster::fake {
namespace {

bool IsSuccess(const TrueEnd& end) { return end.kind == TrueEnd::Kind::kExit && end.code == 0; }

}  // namespace

std::string Cluster::LogPath(const std::string& run_key, uint32_t rank, v1::LogStream stream) {
  return fmt::format("/runs/{}/{}.{}", run_key, rank,
                     stream == v1::LOG_STREAM_STDERR ? "err" : "out");
}

bool Cluster::Submit(const agent::v1::Assignment& run) {
  const std::string& key = run.run_key();
  if (fenced_.contains(key)) return false;
  owner_.OnSubmitted(key);
  Job job;
  job.id = next_id_++;
  job.run_key = key;
  job.is_held = run.held();
  const uint32_t ranks = std::max(1u, run.spec().nodes());
  for (uint32_t rank = 0; rank < ranks; ++rank) job.programs.push_back(owner_.ProgramOf(run, rank));
  jobs_[key] = std::move(job);
  StartWhatFits();
  return true;
}

void Cluster::Cancel(const std::string& run_key) {
  Job* job = FindJob(run_key);
  if (job == nullptr || job->phase == Phase::kEnded || job->phase == Phase::kFinishing) return;
  const bool runs = job->phase == Phase::kRunning || job->phase == Phase::kSuspended;
  if (!runs) return End(job, {TrueEnd::Kind::kCanceled});
  Stop(job, TrueEnd::Kind::kCanceled);
}

void Cluster::EndLease(const std::string& run_key) {
  Job* job = FindJob(run_key);
  if (job == nullptr || (job->phase != Phase::kRunning && job->phase != Phase::kSuspended)) return;
  Stop(job, TrueEnd::Kind::kLeaseEnded);
}

void Cluster::Stop(Job* job, TrueEnd::Kind kind) {
  job->is_stopping = true;
  Plan(job, owner_.EndTime(), [this, kind](Job* j) {
    for (uint32_t rank = 0; rank < j->programs.size(); ++rank)
      files_.Append(LogPath(j->run_key, rank, v1::LOG_STREAM_STDOUT), j->programs[rank].last_words);
    End(j,
        {kind, 0,
         kind == TrueEnd::Kind::kLeaseEnded ? TrueEnd::Fault::kCluster : TrueEnd::Fault::kProgram});
  });
}

void Cluster::SetHeld(const std::string& run_key, bool held) {
  if (Job* job = FindJob(run_key)) job->is_held = held;
  StartWhatFits();
}

void Cluster::Forget(const std::string& run_key) {
  jobs_.erase(run_key);
  files_.RemoveTree(fmt::format("/runs/{}", run_key)).IgnoreError();
  StartWhatFits();
}

void Cluster::Requeue(const std::string& run_key) {
  Job* job = FindJob(run_key);
  ++job->restart;
  job->is_stopping = false;
  Enter(job, Phase::kQueued);
  StartWhatFits();
}

void Cluster::Suspend(const std::string& run_key, absl::Duration time) {
  Job* job = FindJob(run_key);
  if (job->is_stopping) return;
  Enter(job, Phase::kSuspended);
  Plan(job, time, [this](Job* j) {
    if (!j->is_stopping) Run(j);
  });
}

const Cluster::Job* Cluster::Find(const std::string& run_key) const {
  const auto found = jobs_.find(run_key);
  return found == jobs_.end() ? nullptr : &found->second;
}

Cluster::Job* Cluster::FindJob(const std::string& run_key) {
  const auto found = jobs_.find(run_key);
  return found == jobs_.end() ? nullptr : &found->second;
}

void Cluster::StartWhatFits() {
  const auto used = std::count_if(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    const Phase phase = entry.second.phase;
    return phase != Phase::kQueued && phase != Phase::kEnded;
  });
  int64_t free = options_.slots - used;
  std::vector<Job*> waiting;
  for (auto& [key, job] : jobs_) {
    if (job.phase == Phase::kQueued && !job.is_held) waiting.push_back(&job);
  }
  std::sort(waiting.begin(), waiting.end(), [](auto* a, auto* b) { return a->id < b->id; });
  for (Job* job : waiting) {
    if (free-- <= 0) return;
    Enter(job, Phase::kStarting);
    Plan(job, owner_.StartTime(), [this](Job* j) { Begin(j); });
  }
}

void Cluster::Plan(Job* job, absl::Duration delay, std::function<void(Job*)> action) {
  if (delay == absl::InfiniteDuration()) return;
  loop_.After(delay, [this, key = job->run_key, id = job->id, number = job->phase_number, action] {
    Job* now = FindJob(key);
    if (now != nullptr && now->id == id && now->phase_number == number) action(now);
  });
}

void Cluster::Enter(Job* job, Phase phase) {
  job->phase = phase;
  ++job->phase_number;
}

void Cluster::Begin(Job* job) {
  if (!owner_.MayStart(job->run_key))
    return End(job, {TrueEnd::Kind::kLeaseEnded, 0, TrueEnd::Fault::kCluster});
  job->has_started = true;
  job->start_time = loop_.now();
  for (uint32_t rank = 0; rank < job->programs.size(); ++rank) {
    files_.Append(LogPath(job->run_key, rank, v1::LOG_STREAM_STDOUT), job->programs[rank].output);
  }
  owner_.OnStarted(job->run_key, job->restart);
  Run(job);
}

// The first rank that fails ends the others; if none does, the last one to end is the end.
void Cluster::Run(Job* job) {
  Enter(job, Phase::kRunning);
  const auto order = [job](uint32_t rank) {
    const Program& program = job->programs[rank];
    const bool fails = !IsSuccess(program.end) && program.duration < absl::InfiniteDuration();
    return std::pair(!fails, fails ? program.duration : -program.duration);
  };
  uint32_t rank = 0;
  for (uint32_t other = 1; other < job->programs.size(); ++other) {
    if (order(other) < order(rank)) rank = other;
  }
  Plan(job, job->programs[rank].duration, [this, rank](Job* j) {
    const TrueEnd end = j->programs[rank].end;
    if (end.kind == TrueEnd::Kind::kVanished) return End(j, end);
    j->has_record = true;
    j->end = end;
    j->end_rank = IsSuccess(end) ? 0 : rank;
    j->end_time = loop_.now();
    owner_.OnEnded(j->run_key, end);
    Enter(j, Phase::kFinishing);
    Plan(j, owner_.FinishTime(), [this, end](Job* finishing) { End(finishing, end); });
  });
}

void Cluster::End(Job* job, TrueEnd end) {
  job->end = end;
  if (!job->has_record) {
    job->end_time = loop_.now();
    owner_.OnEnded(job->run_key, end);
  }
  Enter(job, Phase::kEnded);
  if (end.kind == TrueEnd::Kind::kVanished) {
    job->in_queue = false;
  } else {
    Plan(job, options_.memory, [this](Job* j) {
      j->in_queue = false;
      if (!j->has_record && !options_.keeps_history) owner_.OnLeftNoTrace(j->run_key);
    });
  }
  StartWhatFits();
}

}  // namespace muster::fake
