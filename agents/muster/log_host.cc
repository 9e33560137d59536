#include "agents/muster/log_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "agents/muster/call_all.h"
#include "contract/errors.h"
#include "contract/text.h"

namespace muster::remote {
namespace {

// One read of a log takes at most this time, with all its repeats.
constexpr absl::Duration kReadTimeout = absl::Seconds(20);
constexpr std::string_view kRank = "/rank-";

std::string_view EndingOf(v1::LogStream stream) {
  return stream == v1::LOG_STREAM_STDERR ? ".err" : ".out";
}

// The job has no run yet, or the broker has nothing of that rank.
bool IsNothingYet(const absl::Status& status) {
  const auto info = contract::GetErrorInfo(status);
  return info.has_value() && (info->reason() == "NO_SUCH_RUN" || info->reason() == "NO_SUCH_RANK");
}

absl::Status IsNoLog(std::string_view path) {
  return absl::NotFoundError(ToAbsl(fmt::format("\"{}\" is no log", path)));
}

hosts::FileInfo InfoOf(const v1::ListLogsResponse& logs, const LogName& name) {
  hosts::FileInfo info = {.type = hosts::FileType::kRegular};
  for (const v1::Log& log : logs.logs()) {
    if (log.rank() == name.rank && log.stream() == name.stream) info.size = log.size_bytes();
  }
  return info;
}

}  // namespace

std::string LogName::Path() const {
  return fmt::format("/{}{}{}{}", run_key, kRank, rank, EndingOf(stream));
}

std::optional<LogName> LogName::Parse(std::string_view path) {
  LogName name;
  const size_t at = path.find(kRank, 1);
  if (!path.starts_with('/') || at == std::string_view::npos) return std::nullopt;
  name.run_key = path.substr(1, at - 1);
  std::string_view rest = path.substr(at + kRank.size());
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), name.rank);
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  if (error != std::errc()) return std::nullopt;
  if (rest == EndingOf(v1::LOG_STREAM_STDERR)) {
    name.stream = v1::LOG_STREAM_STDERR;
  } else if (rest != EndingOf(v1::LOG_STREAM_STDOUT)) {
    return std::nullopt;
  }
  return name;
}

absl::StatusOr<v1::ListLogsResponse> LogHost::ListLogs(const std::string& run_key) {
  const absl::StatusOr<JobOfRun> job = find_job_(run_key);
  if (!job.ok()) return job.status();
  v1::ListLogsRequest request;
  request.set_job_id(job->id);
  absl::StatusOr<v1::ListLogsResponse> logs = connection_.For("ListLogs").ListLogs(request);
  if (IsNothingYet(logs.status())) return v1::ListLogsResponse();
  if (!logs.ok() || !job->has_ended) return logs;
  const bool grows = std::any_of(logs->logs().begin(), logs->logs().end(), [](const v1::Log& log) {
    return log.end() == v1::LOG_END_MORE_LATER;
  });
  if (grows) return absl::UnavailableError("the remote broker waits for the rest of its output");
  return logs;
}

std::map<std::string, absl::StatusOr<v1::ListLogsResponse>> LogHost::ListLogsOf(
    const std::vector<std::string>& paths) {
  std::map<std::string, absl::StatusOr<v1::ListLogsResponse>> by_run;
  for (const std::string& path : paths) {
    if (const auto name = LogName::Parse(path))
      by_run.emplace(name->run_key, absl::UnknownError("not asked yet"));
  }
  std::vector<decltype(by_run)::value_type*> runs;
  runs.reserve(by_run.size());
  for (auto& run : by_run) runs.push_back(&run);
  CallAll(runs.size(), [&](size_t i) { runs[i]->second = ListLogs(runs[i]->first); });
  return by_run;
}

std::vector<absl::StatusOr<hosts::FileInfo>> LogHost::StatMany(
    const std::vector<std::string>& paths) {
  const auto by_run = ListLogsOf(paths);
  std::vector<absl::StatusOr<hosts::FileInfo>> infos;
  infos.reserve(paths.size());
  for (const std::string& path : paths) {
    const std::optional<LogName> name = LogName::Parse(path);
    if (!name) {
      infos.push_back(IsNoLog(path));
      continue;
    }
    const absl::StatusOr<v1::ListLogsResponse>& logs = by_run.at(name->run_key);
    infos.push_back(logs.ok() ? InfoOf(*logs, *name)
                              : absl::StatusOr<hosts::FileInfo>(logs.status()));
  }
  return infos;
}

absl::StatusOr<hosts::FileInfo> LogHost::Stat(std::string_view path) {
  return std::move(StatMany({std::string(path)}).front());
}

absl::StatusOr<std::string> LogHost::ReadFileRange(std::string_view path, uint64_t offset,
                                                   size_t max_bytes) {
  const std::optional<LogName> name = LogName::Parse(path);
  if (!name) return IsNoLog(path);
  const absl::StatusOr<JobOfRun> job = find_job_(name->run_key);
  if (!job.ok()) return job.status();
  v1::ReadLogRequest request;
  request.set_job_id(job->id);
  request.set_rank(name->rank);
  request.set_stream(name->stream);
  v1::LogPosition* position = request.add_positions();
  position->set_stream(name->stream);
  position->set_offset(offset);
  const auto reader = connection_.For("ReadLog").ReadLog(request, absl::Now() + kReadTimeout);
  std::string data;
  while (data.size() < max_bytes) {
    const absl::StatusOr<std::optional<v1::ReadLogResponse>> piece = reader->Next();
    if (absl::IsOutOfRange(piece.status()) || IsNothingYet(piece.status())) break;
    if (!piece.ok()) return piece.status();
    // The broker has not kept the bytes between, so nobody can give them.
    if (!piece->has_value() || (*piece)->offset() != offset + data.size()) break;
    data += (*piece)->data();
    if ((*piece)->end() != v1::LOG_END_UNSPECIFIED) break;
  }
  data.resize(std::min(data.size(), max_bytes));
  return data;
}

absl::StatusOr<std::string> LogHost::ReadFile(std::string_view path, size_t max_bytes) {
  absl::StatusOr<std::string> data = ReadFileRange(path, 0, max_bytes);
  if (data.ok() && data->size() == max_bytes)
    return absl::ResourceExhaustedError(ToAbsl(fmt::format("\"{}\" is longer", path)));
  return data;
}

std::vector<absl::StatusOr<std::string>> LogHost::ReadMany(
    const std::vector<hosts::FilePart>& parts) {
  std::vector<absl::StatusOr<std::string>> contents(parts.size(),
                                                    absl::UnknownError("not read yet"));
  CallAll(parts.size(), [&](size_t i) {
    contents[i] = ReadFileRange(parts[i].path, parts[i].offset, parts[i].max_bytes);
  });
  return contents;
}

}  // namespace muster::remote
