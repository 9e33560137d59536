#include "agents/core/end_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "agents/hosts/local_host.h"
#include "contract/text.h"

namespace muster::agent {
namespace {

// TAO writes it into the results directory or a directory or two below.
constexpr const char* kSearchDepth = "3";
// Clocks of the node that says when the run began and of the file server that dates the file differ
// by less. An older file is of an earlier run of the job, and says nothing of this one.
constexpr absl::Duration kClockSlack = absl::Seconds(2);
// A search of a directory with a hundred thousand files takes seconds.
constexpr absl::Duration kSearchTimeout = absl::Seconds(30);
// Hundreds of paths; nobody has more of these files.
constexpr size_t kMaxSearchBytes = 1 << 20;

// The file system has answered: there is nothing that this user can read.
bool IsFinal(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsPermissionDenied(status) ||
         absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

struct StatusPath {
  std::string path;
  uint64_t size = 0;
  absl::Time modify_time = absl::InfinitePast();
};

// What find printed: "SECONDS.FRACTION SIZE PATH", each ended by a NUL byte. The newest.
StatusPath NewestOf(std::string_view printed) {
  StatusPath newest;
  while (!printed.empty()) {
    const std::string_view entry = printed.substr(0, printed.find('\0'));
    printed.remove_prefix(std::min(printed.size(), entry.size() + 1));
    const size_t first = entry.find(' ');
    const size_t second = first == entry.npos ? first : entry.find(' ', first + 1);
    if (second == entry.npos) continue;
    double seconds = 0;
    uint64_t size = 0;
    if (!absl::SimpleAtod(ToAbsl(entry.substr(0, first)), &seconds) ||
        !absl::SimpleAtoi(ToAbsl(entry.substr(first + 1, second - first - 1)), &size)) {
      continue;
    }
    const absl::Time time = absl::UnixEpoch() + absl::Seconds(seconds);
    if (time > newest.modify_time) newest = {std::string(entry.substr(second + 1)), size, time};
  }
  return newest;
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

EndReader::EndReader(Backend* backend, EndReaderOptions options)
    : backend_(*backend),
      options_(options),
      local_host_(backend->LogHost() == nullptr ? std::make_unique<hosts::LocalHost>() : nullptr),
      host_(local_host_ ? *local_host_ : *backend->LogHost()) {}

void EndReader::Complete(const std::vector<RunHandle>& runs, ObserveOutcome* outcome) {
  const absl::Time until = time_.Now() + options_.max_round;
  std::map<std::string_view, const RunHandle*> by_key;
  for (const RunHandle& run : runs) by_key.emplace(run.run_key, &run);
  std::erase_if(tries_, [&](const auto& entry) { return !by_key.contains(entry.first); });
  std::vector<Observation> complete;
  complete.reserve(outcome->observations.size());
  for (Observation& seen : outcome->observations) {
    const auto run = by_key.find(seen.run_key);
    const bool ended = seen.state == v1::RUN_STATE_FAILED || seen.state == v1::RUN_STATE_SUCCEEDED;
    if (ended && run != by_key.end()) {
      if (time_.Now() >= until) continue;
      if (!Read(*run->second, &seen).ok() && ++tries_[seen.run_key] < options_.max_tries) continue;
      tries_.erase(seen.run_key);
    }
    complete.push_back(std::move(seen));
  }
  outcome->observations = std::move(complete);
}

absl::Status EndReader::Read(const RunHandle& run, Observation* seen) {
  Observation refined = *seen;
  absl::Status status = ReadStatus(run, &refined);
  if (MayLogsTell(refined)) {
    const absl::StatusOr<std::vector<LogEnd>> logs = ReadLogs(run, refined);
    status.Update(logs.status());
    if (logs.ok()) RefineByLogs(patterns_, *logs, &*refined.failure);
  }
  *seen = std::move(refined);
  return status;
}

absl::Status EndReader::ReadStatus(const RunHandle& run, Observation* seen) {
  if (run.assignment == nullptr || !run.assignment->spec().status_json()) return absl::OkStatus();
  const bool succeeded = seen->state == v1::RUN_STATE_SUCCEEDED;
  if (!succeeded && !MayLogsTell(*seen)) return absl::OkStatus();
  const absl::StatusOr<std::optional<StatusFile>> file =
      FindStatus(backend_.ResultsDirectory(run), seen->start_time.value_or(absl::InfinitePast()));
  if (succeeded) {
    const std::optional<v1::Failure> failure =
        JudgeTraining(file.ok() && file->has_value() ? **file : StatusFile());
    if (!failure.has_value()) return absl::OkStatus();
    seen->state = v1::RUN_STATE_FAILED;
    seen->failure = *failure;
    const std::string why =
        file.ok() ? failure->message() : std::string(ToStd(file.status().message()));
    seen->evidence.set_detail(fmt::format("{}; status.json: {}", seen->evidence.detail(), why));
  }
  const bool has_file = file.ok() && file->has_value();
  if (has_file) AddQuote("status.json", (*file)->message, &*seen->failure);
  if (!succeeded || (has_file && (*file)->status == TrainingStatus::kFailure)) return file.status();
  return absl::UnavailableError("the last entry may still come");
}

absl::StatusOr<std::optional<StatusFile>> EndReader::FindStatus(const std::string& directory,
                                                                absl::Time since) {
  if (directory.empty()) return std::nullopt;
  hosts::Command command;
  command.argv = {"find", "-H",    directory,     "-maxdepth", kSearchDepth,  "-type",
                  "f",    "-name", "status.json", "-printf",   "%T@ %s %p\\0"};
  command.timeout = kSearchTimeout;
  command.max_stdout_bytes = kMaxSearchBytes;
  const absl::StatusOr<hosts::CommandResult> found = host_.Run(command);
  if (!found.ok()) return found.status();
  const StatusPath newest = NewestOf(found->stdout_data);
  if (newest.path.empty() || newest.modify_time < since - kClockSlack) return std::nullopt;
  const uint64_t offset = newest.size > kMaxStatusBytes ? newest.size - kMaxStatusBytes : 0;
  const absl::StatusOr<std::string> text =
      host_.ReadFileRange(newest.path, offset, kMaxStatusBytes);
  if (text.ok()) return ReadStatusFile(*text);
  if (IsFinal(text.status())) return std::nullopt;
  return text.status();
}

absl::StatusOr<std::vector<LogEnd>> EndReader::ReadLogs(const RunHandle& run,
                                                        const Observation& seen) {
  std::vector<LogSource> sources = backend_.Logs(run);
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
    if (!infos[i].ok() && !IsFinal(infos[i].status())) return infos[i].status();
    const uint64_t size = infos[i].ok() ? infos[i]->size : 0;
    const uint64_t offset =
        size > contract::kMaxLogTailBytes ? size - contract::kMaxLogTailBytes : 0;
    parts.push_back({sources[i].path, offset, contract::kMaxLogTailBytes});
  }
  const std::vector<absl::StatusOr<std::string>> texts = host_.ReadMany(parts);
  std::vector<LogEnd> ends;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!texts[i].ok() && !IsFinal(texts[i].status())) return texts[i].status();
    if (!texts[i].ok()) continue;
    ends.push_back({FileName(paths[i]), *texts[i], sources[i].stream == v1::LOG_STREAM_STDERR});
  }
  return ends;
}

}  // namespace muster::agent
