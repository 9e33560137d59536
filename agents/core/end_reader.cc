#include "agents/core/end_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "contract/sentences.h"
#include "contract/text.h"

namespace muster::agents {
namespace {

// This is the reason of an end that is held back because a round had no time for it.
constexpr std::string_view kNoTurn =
    "it has ended, and what it has left is not read yet: the host is slow, or many have ended";

// The file system has answered: there is nothing that this user can read.
bool IsFinalAnswer(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsPermissionDenied(status) ||
         absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

// Returns the observation that people read of a run whose end is held back. It has no failure and
// no exit status yet: how it ended is not known.
Observation HeldBack(Observation seen, const std::string& why) {
  seen.state = v1::RUN_STATE_FINISHING;
  seen.reason = contract::MakeReason(v1::STATE_REASON_CODE_READING_END, {.detail = why});
  seen.end_time.reset();
  seen.exit.reset();
  seen.failure.reset();
  return seen;
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

EndReader::EndReader(Backend* backend, EndReaderOptions options)
    : backend_(*backend),
      judges_ends_(backend->capabilities().judges_ends),
      options_(options),
      output_host_(backend),
      host_(output_host_.get()),
      status_(&host_) {}

std::vector<EndReader::End> EndReader::TakeEnds(const std::vector<RunHandle>& runs,
                                                ObserveOutcome* outcome) {
  const MutexLock lock(mutex_);
  std::map<std::string_view, const RunHandle*> by_key;
  for (const RunHandle& run : runs) by_key.emplace(run.run_key, &run);
  const auto is_forgotten = [&](const auto& entry) { return !by_key.contains(entry.first); };
  std::erase_if(answered_since_, is_forgotten);
  std::erase_if(held_since_, is_forgotten);
  std::vector<End> ends;
  std::vector<Observation> others;
  for (Observation& seen : outcome->observations) {
    const auto run = by_key.find(seen.run_key);
    if (run == by_key.end() || !NeedsReading(*run->second, seen)) {
      others.push_back(std::move(seen));
      continue;
    }
    held_since_.emplace(seen.run_key, time_.Now());
    if (is_reading_) {
      others.push_back(HoldOrTellLocked(NoTurn(), seen, seen));
    } else {
      ends.push_back({*run->second, std::move(seen)});
    }
  }
  outcome->observations = std::move(others);
  if (!ends.empty()) reading_since_ = time_.Now();
  is_reading_ = is_reading_ || !ends.empty();
  return ends;
}

std::vector<Observation> EndReader::Read(std::vector<End> ends) {
  const absl::Time until = time_.Now() + options_.max_round;
  // A host that hangs takes a whole round for one of them.
  std::sort(ends.begin(), ends.end(), [this](const End& a, const End& b) {
    return std::pair(a.seen.run_key <= last_read_, a.seen.run_key) <
           std::pair(b.seen.run_key <= last_read_, b.seen.run_key);
  });
  std::vector<Observation> told;
  for (End& end : ends) {
    if (time_.Now() < until) {
      last_read_ = end.seen.run_key;
      told.push_back(ReadOrHold(end.run, std::move(end.seen)));
    } else {
      told.push_back(HoldOrTell(NoTurn(), end.seen, end.seen));
    }
  }
  const MutexLock lock(mutex_);
  is_reading_ = false;
  return told;
}

absl::Duration EndReader::reading_for() const {
  const MutexLock lock(mutex_);
  return is_reading_ ? time_.Now() - reading_since_ : absl::ZeroDuration();
}

bool EndReader::NeedsReading(const RunHandle& run, const Observation& seen) const {
  if (judges_ends_) return false;
  const bool has_status = run.assignment != nullptr && run.assignment->spec().status_json();
  return MayLogsTell(seen) || (has_status && seen.state == v1::RUN_STATE_SUCCEEDED);
}

Observation EndReader::ReadOrHold(const RunHandle& run, Observation seen) {
  Observation refined = seen;
  const Reading reading = Read(run, &refined);
  return HoldOrTell(reading, std::move(seen), std::move(refined));
}

EndReader::Reading EndReader::NoTurn() { return {Reading::Kind::kNoAnswer, std::string(kNoTurn)}; }

Observation EndReader::HoldOrTell(const Reading& reading, Observation seen, Observation told) {
  const MutexLock lock(mutex_);
  return HoldOrTellLocked(reading, std::move(seen), std::move(told));
}

Observation EndReader::HoldOrTellLocked(const Reading& reading, Observation seen,
                                        Observation told) {
  const absl::Time now = time_.Now();
  bool is_held = false;
  if (reading.kind == Reading::Kind::kMayChange) {
    is_held = now - answered_since_.emplace(seen.run_key, now).first->second < options_.grace;
  } else if (reading.kind == Reading::Kind::kNoAnswer) {
    is_held = now - held_since_.emplace(seen.run_key, now).first->second < options_.max_hold;
    told.evidence.set_detail(fmt::format("{}; {}, and is told without after {}",
                                         told.evidence.detail(), reading.why,
                                         absl::FormatDuration(options_.max_hold)));
  }
  if (is_held) return HeldBack(std::move(seen), reading.why);
  answered_since_.erase(seen.run_key);
  held_since_.erase(seen.run_key);
  return told;
}

EndReader::Reading EndReader::Read(const RunHandle& run, Observation* seen) {
  RunOutput output = backend_.OpenLogs(run);
  Reading reading = ReadStatus(run, output, seen);
  if (reading.kind == Reading::Kind::kNoAnswer || !MayLogsTell(*seen)) return reading;
  const absl::StatusOr<std::vector<LogEnd>> logs = ReadLogs(std::move(output.logs), *seen);
  if (!logs.ok()) return Unread("logs", logs.status());
  RefineByLogs(patterns_, *logs, output.may_have_gpus, &*seen->failure);
  return reading;
}

// The run is known to have failed, and only the reason is unknown: a file that a host which answers
// cannot read in time is left out. Without the host nobody knows whether another run is worth it.
EndReader::Reading EndReader::Unread(std::string_view what, const absl::Status& status) {
  const bool is_away = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  return {is_away ? Reading::Kind::kNoAnswer : Reading::Kind::kMayChange,
          fmt::format("it has ended, and its {} cannot be read yet: {}", what,
                      ToStd(status.message()))};
}

EndReader::Reading EndReader::ReadStatus(const RunHandle& run, const RunOutput& output,
                                         Observation* seen) {
  if (run.assignment == nullptr || !run.assignment->spec().status_json()) return {};
  const bool succeeded = seen->state == v1::RUN_STATE_SUCCEEDED;
  const absl::StatusOr<std::optional<FoundStatus>> found = status_.Find(output, seen->start_time);
  if (!found.ok()) {
    Reading unread = Unread("status.json", found.status());
    // Only that file tells whether the run failed at all.
    if (succeeded) unread.kind = Reading::Kind::kNoAnswer;
    return unread;
  }
  if (found->has_value()) seen->progress = ProgressOf(**found);
  const StatusFile status = found->has_value() ? (*found)->file : StatusFile();
  if (succeeded) {
    const std::optional<v1::Failure> failure = JudgeTraining(status);
    if (!failure.has_value()) return {};
    seen->state = v1::RUN_STATE_FAILED;
    seen->failure = *failure;
    seen->evidence.set_detail(
        fmt::format("{}; status.json: {}", seen->evidence.detail(), failure->message()));
  }
  AddQuote("status.json", status.message, &*seen->failure);
  if (!succeeded || status.status == TrainingStatus::kFailure) return {};
  return {Reading::Kind::kMayChange,
          "it has ended, and the last entry of its status.json may still come"};
}

absl::StatusOr<std::vector<LogEnd>> EndReader::ReadLogs(std::vector<LogSource> sources,
                                                        const Observation& seen) {
  const uint32_t failed = seen.exit.has_value() ? seen.exit->rank() : 0;
  std::stable_sort(sources.begin(), sources.end(), [&](const LogSource& a, const LogSource& b) {
    return std::pair(a.rank != failed, a.rank) < std::pair(b.rank != failed, b.rank);
  });
  if (sources.size() > options_.max_files) sources.resize(options_.max_files);
  std::vector<std::string> paths;
  for (const LogSource& source : sources) paths.push_back(source.path);
  const std::vector<absl::StatusOr<hosts::FileInfo>> infos = host_.StatMany(paths);
  std::vector<hosts::FilePart> parts;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!infos[i].ok() && !IsFinalAnswer(infos[i].status())) return infos[i].status();
    const uint64_t size = infos[i].ok() ? infos[i]->size : 0;
    const uint64_t offset =
        size > contract::kMaxLogTailBytes ? size - contract::kMaxLogTailBytes : 0;
    parts.push_back({sources[i].path, offset, contract::kMaxLogTailBytes});
  }
  const std::vector<absl::StatusOr<std::string>> texts = host_.ReadMany(parts);
  std::vector<LogEnd> ends;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!texts[i].ok() && !IsFinalAnswer(texts[i].status())) return texts[i].status();
    if (!texts[i].ok()) continue;
    ends.push_back({FileName(paths[i]), *texts[i], sources[i].stream == v1::LOG_STREAM_STDERR});
  }
  return ends;
}

}  // namespace muster::agents
