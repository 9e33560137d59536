// Observes all runs with one squeue, and with sacct those that it does not list any more.
#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/exit_record.h"
#include "agents/slurm/explain_end.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/image_cache.h"
#include "agents/slurm/memory_words.h"
#include "contract/roles.h"
#include "contract/states.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// slurmctld is asked about at most this many single jobs at a time, where there is no accounting.
constexpr size_t kMaxShowJobs = 20;
// The end of what Slurm wrote into the batch script's output.
constexpr uint64_t kSlurmOutputBytes = 4096;

JobId IdOf(const agents::RunHandle& run) { return ParseJobId(run.external_id).value_or(JobId()); }

const QueueRow* FindRow(const std::vector<QueueRow>& rows, const JobId& id) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const QueueRow& r) { return r.job_id == id; });
  return row == rows.end() ? nullptr : &*row;
}

const QueueRow* LowestRow(const std::vector<QueueRow>& rows) {
  const auto row =
      std::min_element(rows.begin(), rows.end(),
                       [](const QueueRow& a, const QueueRow& b) { return a.job_id < b.job_id; });
  return row == rows.end() ? nullptr : &*row;
}

bool IsOnNodes(const QueueRow& row) {
  const JobPhase phase = row.state.phase;
  return phase != JobPhase::kUnknown && phase != JobPhase::kPending && !HasEnded(phase);
}

// A record that cannot be read is not waited for in haste.
Awaits AwaitsOf(const RunFacts& facts) {
  const bool completes =
      facts.queue.has_value() && facts.queue->state.phase == JobPhase::kCompleting;
  if (facts.record.has_value() || completes) return Awaits::kVerdict;
  return facts.cancel_asked ? Awaits::kCancel : Awaits::kNothing;
}

// Returns the name of the job that converts the run's image; nothing if the run has none.
std::optional<std::string> ConversionOf(const agents::RunHandle& run) {
  if (run.assignment == nullptr || run.assignment->spec().image().empty()) return std::nullopt;
  const absl::StatusOr<contract::Image> image =
      contract::ParseImage(run.assignment->spec().image());
  if (!image.ok() || image->is_file()) return std::nullopt;
  return ConversionName(*image);
}

// Adds the job that converts the run's image, or has failed to. `rows`: the queue by name.
void AddConversion(const agents::RunHandle& run, const std::multimap<std::string, QueueRow>& rows,
                   RunFacts* facts) {
  const bool waits = facts->queue.has_value() && facts->queue->reason == "Dependency";
  const bool lacks_image =
      facts->record.has_value() && facts->record->problem == ExitRecord::Problem::kImage;
  const std::optional<std::string> name =
      waits || lacks_image ? ConversionOf(run) : std::optional<std::string>();
  if (!name.has_value()) return;
  const auto [first, last] = rows.equal_range(*name);
  for (auto row = first; row != last; ++row) {
    const QueueRow& job = row->second;
    if (waits && !HasEnded(job.state.phase)) facts->conversion = job;
    const bool has_failed = HasEnded(job.state.phase) && job.state.phase != JobPhase::kCompleted;
    if (lacks_image && has_failed &&
        (!facts->ended_conversion.has_value() || facts->ended_conversion->job_id < job.job_id)) {
      facts->ended_conversion = job;
    }
  }
}

// Names the program that the record, if there is one, belongs to.
void NameProgram(const v1::JobSpec& spec, RunFacts* facts) {
  facts->working_directory = spec.working_directory();
  const v1::Role* role =
      facts->record.has_value() ? contract::RoleOfRank(spec, facts->record->rank) : nullptr;
  if (role != nullptr) facts->role = role->name();
  const v1::Command& command = role == nullptr ? spec.command() : role->command();
  if (command.has_argv()) facts->program = command.argv().args(0);
}

}  // namespace

agents::ObserveOutcome SlurmBackend::ObserveSettled(const std::vector<agents::RunHandle>& runs) {
  WatchRecords(!runs.empty());
  agents::ObserveOutcome outcome;
  std::optional<Queue> queue;
  if (!runs.empty() && IsQueueDue()) {
    absl::StatusOr<Queue> asked = AskQueue();
    if (asked.ok()) queue = *std::move(asked);
  }
  {
    const MutexLock lock(mutex_);
    outcome.scheduler = last_queue_status_;
  }
  std::map<std::string, MaybeRecord> records =
      users_ == nullptr ? ReadRecords(runs) : ReadUsersRecords(runs, queue.value_or(Queue()));
  std::vector<RunFacts> facts;
  facts.reserve(runs.size());
  std::vector<JobToEnd> strays;
  for (const agents::RunHandle& run : runs) {
    const auto record = records.find(run.run_key);
    facts.push_back(Gather(
        run, queue, record == records.end() ? std::nullopt : std::move(record->second), &strays));
  }
  const absl::Time deadline = time_.Now() + config_.round_patience;
  AskHistory(runs, deadline, &facts);
  // These do not count as cancels that were asked for; their fate is judged when they have ended. A
  // call that fails is made again at the next look at the queue.
  std::vector<JobToEnd> held_for_good;
  const Patience patience{config_.record_grace, config_.absence_grace};
  for (RunFacts& run : facts) {
    if (IsLaunchFailed(run) && !HasEnded(run.queue->state.phase))
      held_for_good.push_back({run.run_key, run.job_id});
    std::optional<agents::Observation> seen = Judge(run, patience);
    // A claim beside records that cannot be read might be made on another file system.
    if (seen.has_value() && seen->state == v1::RUN_STATE_LOST && run.record_error.empty() &&
        TakeClaim(run.run_key).ok()) {
      run.is_fenced = true;
      seen = Judge(run, patience);
    }
    if (!seen.has_value()) continue;
    // Comes before the end is told: the run's logs are complete then.
    if (contract::IsTerminal(seen->state)) HandOn(run);
    outcome.observations.push_back(*std::move(seen));
  }
  outcome.scheduler.Update(reads_.State());
  SetPace(facts, queue.has_value(), outcome.observations);
  EndJobs(held_for_good, deadline);
  EndStrays(std::move(strays), deadline);
  const MutexLock lock(mutex_);
  for (const std::string& run_key : std::exchange(forgotten_, {})) tracks_.erase(run_key);
  return outcome;
}

// The words are lost if the file server hangs: a run's end comes before them.
void SlurmBackend::HandOn(const RunFacts& run) {
  const std::string words = MemoryWords(run.slurm_output);
  if (words.empty()) return;
  const RunPaths paths = PathsOf(run.run_key);
  const auto write = [paths, words](hosts::Host* host) {
    HandOnMemoryWords(words, paths, host);
    return absl::OkStatus();
  };
  ReadsOf(run.run_key).Do(paths.script_errors(), write).IgnoreError();
}

// An exit record wakes the agent between two squeue; most of those rounds do without one.
bool SlurmBackend::IsQueueDue() const {
  const absl::Duration interval = ObserveInterval();
  const MutexLock lock(mutex_);
  const bool is_awaited = pace_.interval() < config_.observe_interval;
  return time_.Now() - last_queue_time_ >= (is_awaited ? interval : interval / 2);
}

// The pace changes only after a look at the queue, which alone shows that a run awaits nothing any
// more.
void SlurmBackend::SetPace(const std::vector<RunFacts>& facts, bool asked,
                           const std::vector<agents::Observation>& observations) {
  std::set<std::string_view> ended;
  for (const agents::Observation& seen : observations) {
    if (contract::IsTerminal(seen.state)) ended.insert(seen.run_key);
  }
  bool awaits = false;
  bool is_news = false;
  const MutexLock lock(mutex_);
  for (const RunFacts& run : facts) {
    Track& track = tracks_[run.run_key];
    const Awaits before = track.awaits;
    const Awaits now = ended.contains(run.run_key) ? Awaits::kNothing : AwaitsOf(run);
    track.awaits = asked || ended.contains(run.run_key) ? now : std::max(before, now);
    awaits = awaits || track.awaits != Awaits::kNothing;
    is_news = is_news || track.awaits > before;
  }
  pace_.Looked(awaits, asked);
  if (is_news) pace_.Hurry();
}

absl::StatusOr<SlurmBackend::Queue> SlurmBackend::AskQueue() {
  const absl::Time begin = time_.Now();
  // Only the lists of arrays tell a task from a job of somebody else's.
  const absl::Status loaded = arrays_.Load();
  absl::StatusOr<std::vector<QueueRow>> rows =
      loaded.ok() ? WholeQueue() : absl::StatusOr<std::vector<QueueRow>>(loaded);
  {
    const MutexLock lock(mutex_);
    last_queue_time_ = begin;
    last_queue_duration_ = time_.Now() - begin;
    last_queue_status_ = rows.status();
  }
  if (!rows.ok()) return rows.status();
  NoteWhatRuns(*rows, begin);
  Queue queue;
  queue.was_asked = true;
  for (QueueRow& row : *rows) {
    // An array all of whose waiting tasks were canceled is listed by its number alone.
    if (IsArrayName(row.name)) queue.arrays.insert(row.name);
    std::string name = RunOf(row.name, row.job_id);
    queue.rows.emplace(std::move(name), std::move(row));
  }
  return queue;
}

// Jobs may have come and gone while nobody looked.
void SlurmBackend::NoteWhatRuns(const std::vector<QueueRow>& rows, absl::Time now) {
  const bool one_runs = std::any_of(rows.begin(), rows.end(), IsOnNodes);
  const MutexLock lock(mutex_);
  const bool was_away = now - std::exchange(none_runs_looked_, now) >= kAloneAfter;
  if (one_runs) {
    none_runs_since_ = absl::InfiniteFuture();
  } else {
    none_runs_since_ = was_away ? now : std::min(none_runs_since_, now);
  }
}

std::string SlurmBackend::WhyAbsenceIsNoProof(const std::string& run_key) {
  const absl::Status there = ReadsOf(run_key).Stat(PathsOf(run_key).script()).status();
  if (there.ok()) return {};
  return fmt::format("the run's files are not there either: {}", ToStd(there.message()));
}

RunFacts SlurmBackend::Gather(const agents::RunHandle& run, const std::optional<Queue>& queue,
                              MaybeRecord record, std::vector<JobToEnd>* strays) {
  RunFacts facts;
  facts.run_key = run.run_key;
  facts.job_id = IdOf(run);
  facts.now = absl::Now();
  facts.last_state = run.state;
  facts.queue_answered = queue.has_value();
  facts.cancel_asked = run.cancel_requested;
  facts.record_is_the_users = users_ != nullptr;
  if (record.ok()) {
    facts.record = *std::move(record);
  } else {
    facts.record_error = ToStd(record.status().message());
    facts.record_is_torn = absl::IsDataLoss(record.status());
  }
  if (run.assignment != nullptr) NameProgram(run.assignment->spec(), &facts);
  std::vector<QueueRow> rows;
  if (queue.has_value()) {
    const auto [first, last] = queue->rows.equal_range(run.run_key);
    for (auto row = first; row != last; ++row) rows.push_back(row->second);
    facts.array_is_known = IsTaskOfAny(run.run_key, queue->arrays);
  }
  ChooseRow(run, rows, &facts, strays);
  DropVoidRecord(&facts);
  const bool is_missing = queue.has_value() && !facts.queue.has_value();
  if (is_missing && !facts.record.has_value() && facts.record_error.empty()) {
    facts.record_error = WhyAbsenceIsNoProof(run.run_key);
  }
  if (queue.has_value()) AddConversion(run, queue->rows, &facts);
  MarkSince(&facts);
  MarkLimit(run, &facts);
  const bool live = facts.queue.has_value() && !HasEnded(facts.queue->state.phase);
  if (queue.has_value() && !live && !ProvesSuccess(facts)) {
    facts.slurm_output = ReadSlurmOutput(run.run_key, facts.job_id);
    facts.memory_limit_bytes = MemoryLimitOf(run);
  }
  return facts;
}

bool SlurmBackend::IsTaskOfAny(const std::string& run_key,
                               const std::set<std::string>& array_names) const {
  const std::vector<ArrayPlace> places = arrays_.PlacesOf(run_key);
  return std::any_of(places.begin(), places.end(),
                     [&](const ArrayPlace& place) { return array_names.contains(place.array); });
}

// Chooses, among the jobs with the run's name, the one that is the run: the one that wrote the
// record or claimed the run, then the one that was launched, then the lowest. The others are
// strays.
void SlurmBackend::ChooseRow(const agents::RunHandle& run, const std::vector<QueueRow>& rows,
                             RunFacts* facts, std::vector<JobToEnd>* strays) {
  const QueueRow* row = FindRow(rows, facts->job_id);
  if (facts->record.has_value()) {
    facts->job_id = facts->record->job_id;
  } else if (facts->queue_answered &&
             (rows.size() > 1 || row == nullptr || HasEnded(row->state.phase))) {
    const absl::StatusOr<std::optional<JobId>> owner = ReadOwner(PathsOf(run.run_key));
    facts->may_have_started = !owner.ok() || owner->has_value();
    if (owner.ok() && owner->has_value()) {
      facts->job_id = **owner;
    } else if (row == nullptr && LowestRow(rows) != nullptr) {
      facts->job_id = LowestRow(rows)->job_id;
    }
  }
  row = FindRow(rows, facts->job_id);
  if (row != nullptr) facts->queue = *row;
  for (JobToEnd& stray : StraysOf(run.run_key, facts->job_id, rows))
    strays->push_back(std::move(stray));
}

// A record stays until batch.sh starts again, long after Slurm has put the job back: meanwhile the
// job waits, and its nodes get ready.
void SlurmBackend::DropVoidRecord(RunFacts* facts) {
  if (!facts->record.has_value() || !facts->record->IsVoidAfterRequeue()) return;
  const uint32_t restart = facts->record->restart;
  const bool waits = facts->queue.has_value() && facts->queue->state.phase == JobPhase::kPending;
  const MutexLock lock(mutex_);
  Track& track = tracks_[facts->run_key];
  // A record that is seen for the first time may be younger than squeue's answer.
  if (waits && track.recorded_restart == restart) track.void_restart = restart;
  track.recorded_restart = restart;
  if (track.void_restart.has_value() && restart <= *track.void_restart) facts->record.reset();
}

void SlurmBackend::MarkSince(RunFacts* facts) {
  const MutexLock lock(mutex_);
  Track& track = tracks_[facts->run_key];
  facts->cancel_asked |= track.cancel_asked;
  if (!facts->queue_answered) return;
  const absl::Time now = time_.Now();
  facts->none_runs_for = std::max(now - none_runs_since_, absl::ZeroDuration());
  const auto mark = [&](bool is, std::optional<absl::Time>* since) {
    if (!is) since->reset();
    if (is && !since->has_value()) *since = now;
    return is ? now - **since : absl::ZeroDuration();
  };
  // The grace counts from when both are known to be missing.
  facts->missing_for =
      mark(!facts->queue.has_value() && facts->record_error.empty(), &track.missing_since);
  const bool ended = facts->queue.has_value() && HasEnded(facts->queue->state.phase);
  facts->ended_for = mark(ended, &track.ended_since);
  facts->unread_for = mark(!facts->record_error.empty(), &track.unread_since);
  track.live.reset();
  if (facts->queue.has_value() && !ended) track.live = facts->queue->job_id;
}

void SlurmBackend::MarkLimit(const agents::RunHandle& run, RunFacts* facts) {
  const bool runs = facts->queue.has_value() && facts->queue->state.phase == JobPhase::kRunning;
  const MutexLock lock(mutex_);
  Track& track = tracks_[facts->run_key];
  if (runs) track.limit_end = facts->queue->end_time;
  facts->limit_end = track.limit_end;
  if (facts->limit_end.has_value() || !facts->record.has_value() || run.assignment == nullptr)
    return;
  const v1::JobSpec& spec = run.assignment->spec();
  if (spec.has_time_limit())
    facts->limit_end = facts->record->start + absl::Minutes(TimeLimitMinutes(spec));
}

void SlurmBackend::AskHistory(const std::vector<agents::RunHandle>& runs, absl::Time deadline,
                              std::vector<RunFacts>* facts) {
  std::vector<RunFacts*> wanted;
  absl::Time since = absl::Now();
  for (size_t i = 0; i < facts->size(); ++i) {
    if (!NeedsHistory((*facts)[i]) || !(*facts)[i].job_id.is_set()) continue;
    wanted.push_back(&(*facts)[i]);
    since = std::min(since, HistoryBegin(runs[i]));
  }
  if (wanted.empty()) return;
  bool keeps_accounting = false;
  {
    const MutexLock lock(mutex_);
    keeps_accounting = keeps_accounting_;
  }
  if (keeps_accounting) {
    std::map<Scheduler*, std::vector<RunFacts*>> shares;
    for (RunFacts* run : wanted) shares[&SchedulerOf(run->run_key)].push_back(run);
    for (const auto& [scheduler, share] : shares) {
      for (size_t i = 0; i < share.size(); i += kMaxIdsPerHistoryCall) {
        const size_t end = std::min(share.size(), i + kMaxIdsPerHistoryCall);
        AskAccounting(scheduler, {share.begin() + i, share.begin() + end}, since, deadline);
      }
    }
  } else {
    AskController(wanted, deadline);
  }
}

void SlurmBackend::AskAccounting(Scheduler* scheduler, const std::vector<RunFacts*>& facts,
                                 absl::Time since, absl::Time deadline) {
  std::vector<JobId> ids;
  for (const RunFacts* run : facts) ids.push_back(run->job_id);
  absl::StatusOr<std::vector<HistoryRow>> rows = scheduler->HistoryOf(ids, since);
  // Nothing runs as the user any more. A job that the agent does not see may be there.
  const bool is_denied = absl::IsPermissionDenied(rows.status());
  if (is_denied) rows = scheduler_->HistoryOf(ids, since);
  if (rows.status().code() == absl::StatusCode::kFailedPrecondition) {
    {
      const MutexLock lock(mutex_);
      keeps_accounting_ = false;
    }
    AskController(facts, deadline);
    return;
  }
  for (RunFacts* run : facts) {
    run->history_answer = rows.ok() ? RunFacts::History::kAnswered : RunFacts::History::kNoAnswer;
    if (!rows.ok()) continue;
    for (const HistoryRow& row : *rows) {
      // Ids wrap around, so the name tells whether it is the same job.
      if (row.job_id == run->job_id && RunOf(row.name, row.job_id) == run->run_key)
        run->history = row;
      if (HasEnded(row.state.phase) && IsTaskOfAny(run->run_key, {row.name}))
        run->array_is_known = true;
    }
    if (is_denied && !run->history.has_value()) run->history_answer = RunFacts::History::kNoAnswer;
  }
}

void SlurmBackend::AskController(const std::vector<RunFacts*>& facts, absl::Time deadline) {
  std::vector<RunFacts*> listed;
  for (RunFacts* run : facts) {
    // A job that squeue has forgotten is unknown to scontrol, too.
    if (run->queue.has_value()) {
      listed.push_back(run);
    } else {
      run->history_answer = RunFacts::History::kUnavailable;
    }
  }
  const size_t most = std::min(listed.size(), kMaxShowJobs);
  for (size_t asked = 0; asked < most && (asked == 0 || time_.Now() < deadline); ++asked) {
    // Those that get no answer do not take the others' turns.
    RunFacts* run = listed[next_shown_++ % listed.size()];
    absl::StatusOr<HistoryRow> row = scheduler_->ShowJob(run->job_id);
    run->history_answer = row.ok()                         ? RunFacts::History::kAnswered
                          : absl::IsNotFound(row.status()) ? RunFacts::History::kUnavailable
                                                           : RunFacts::History::kNoAnswer;
    if (row.ok() && RunOf(row->name, run->job_id) == run->run_key) run->history = *std::move(row);
  }
}

std::string SlurmBackend::SlurmOutputOf(const std::string& run_key, const JobId& job_id) const {
  for (const ArrayPlace& place : arrays_.PlacesOf(run_key)) {
    if (job_id.task == place.task) return arrays_.PathsFor(place.array, run_key).output(place.task);
  }
  return PathsOf(run_key).slurm_output();
}

std::string SlurmBackend::ReadSlurmOutput(const std::string& run_key, const JobId& job_id) {
  const std::string path = SlurmOutputOf(run_key, job_id);
  PatientReads& reads = ReadsOf(run_key);
  const absl::StatusOr<hosts::FileInfo> info = reads.Stat(path);
  if (!info.ok()) return {};
  const uint64_t offset = info->size > kSlurmOutputBytes ? info->size - kSlurmOutputBytes : 0;
  const std::string end = reads.ReadFileRange(path, offset, kSlurmOutputBytes).value_or("");
  return std::string(SinceLastStart(end));
}

}  // namespace muster::slurm
