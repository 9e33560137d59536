#include "agents/core/status_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "agents/core/proto_time.h"
#include "contract/characters.h"
#include "contract/path_within.h"
#include "contract/text.h"

namespace muster::agents {
namespace {

// TAO writes it into the results directory or a directory or two below.
constexpr const char* kSearchDepth = "3";
// A status.json that is older than the run's begin comes from an earlier run of the job, and says
// nothing about this one. Both are dated by file servers where the cluster has a start mark; where
// it has none, and where logs and results are on two servers, clocks are taken to differ by less
// than this.
constexpr absl::Duration kClockSlack = absl::Seconds(5);
// A search of a directory with a hundred thousand files takes seconds.
constexpr absl::Duration kSearchTimeout = absl::Seconds(30);
// That is hundreds of paths; nobody has more of these files.
constexpr size_t kMaxSearchBytes = 1 << 20;
// Bytes of find's complaints that people are shown.
constexpr size_t kMaxComplaintBytes = 200;

// Bytes of a message that people are shown as progress.
constexpr size_t kMaxProgressBytes = 1024;

struct StatusPath {
  std::string path;
  uint64_t size = 0;
  absl::Time modify_time = absl::InfinitePast();
};

// Reads the output of find: "SECONDS.FRACTION SIZE PATH", each ended by a NUL byte. Returns the
// newest.
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

// Returns whether find met nothing worse than what is not there: that is an answer. `complaints`:
// what it wrote to stderr in the C locale.
bool IsOnlyMissing(std::string_view complaints) {
  constexpr std::string_view kMissing = ": No such file or directory";
  bool is_missing = false;
  while (!complaints.empty()) {
    const std::string_view line = complaints.substr(0, complaints.find('\n'));
    complaints.remove_prefix(std::min(complaints.size(), line.size() + 1));
    if (!line.ends_with(kMissing)) return false;
    is_missing = true;
  }
  return is_missing;
}

bool IsBelow(std::string_view path, std::string_view directory) {
  return contract::IsWithin(path, directory) &&
         path.find("/../", directory.size() - 1) == path.npos;
}

std::string WordsOf(const hosts::CommandResult& search) {
  const std::string_view complaints = search.stderr_data;
  const std::string_view line = complaints.substr(0, complaints.find('\n'));
  if (line.empty())
    return fmt::format("find ended with code {}, signal {}", search.exit_code, search.signal);
  return std::string(line.substr(0, kMaxComplaintBytes));
}

}  // namespace

absl::StatusOr<std::optional<FoundStatus>> StatusReader::Find(
    const RunOutput& output, std::optional<absl::Time> start_time) {
  const absl::StatusOr<absl::Time> since = StartOf(output, start_time);
  if (!since.ok()) return since.status();
  return FindIn(output.readable_results, *since);
}

absl::StatusOr<absl::Time> StatusReader::StartOf(const RunOutput& output,
                                                 std::optional<absl::Time> start_time) {
  if (!output.start_mark.empty()) {
    const absl::StatusOr<hosts::FileInfo> info = host_.Stat(output.start_mark);
    if (info.ok()) return info->modify_time;
    if (!absl::IsNotFound(info.status())) return info.status();
  }
  return start_time.value_or(absl::InfinitePast());
}

absl::StatusOr<std::optional<FoundStatus>> StatusReader::FindIn(const std::string& directory,
                                                                absl::Time since) {
  // Its launch had one: the cluster's settings have changed since.
  if (directory.empty())
    return absl::FailedPreconditionError("the cluster's settings lead to no results directory");
  hosts::Command command;
  command.argv = {"find", "-H",    directory,     "-maxdepth", kSearchDepth,  "-type",
                  "f",    "-name", "status.json", "-printf",   "%T@ %s %p\\0"};
  command.env = {{"LC_ALL", "C"}};
  command.timeout = kSearchTimeout;
  command.max_stdout_bytes = kMaxSearchBytes;
  const absl::StatusOr<hosts::CommandResult> found = host_.Run(command);
  if (!found.ok()) return found.status();
  const StatusPath newest = NewestOf(found->stdout_data);
  if (newest.path.empty() || newest.modify_time < since - kClockSlack) {
    if (found->ok() || IsOnlyMissing(found->stderr_data)) return std::nullopt;
    return absl::InternalError(WordsOf(*found));
  }
  // The user can write what find says if it runs as the job's user. The path alone tells the host
  // as whom to read.
  if (!IsBelow(newest.path, directory)) {
    return absl::PermissionDeniedError(ToAbsl(fmt::format(
        "find named {}, which is not below \"{}\"", contract::Quoted(newest.path), directory)));
  }
  const uint64_t offset = newest.size > kMaxStatusBytes ? newest.size - kMaxStatusBytes : 0;
  const absl::StatusOr<std::string> text =
      host_.ReadFileRange(newest.path, offset, kMaxStatusBytes);
  if (text.ok()) return FoundStatus{ReadStatusFile(*text), newest.modify_time};
  if (absl::IsNotFound(text.status())) return std::nullopt;
  return text.status();
}

v1::Progress ProgressOf(const FoundStatus& found) {
  v1::Progress progress;
  *progress.mutable_time() = ToProto(found.modify_time);
  progress.set_message(
      std::string(contract::CutBetweenCharacters(found.file.message, kMaxProgressBytes)));
  for (const auto& [name, number] : found.file.numbers)
    (*progress.mutable_numbers())[name] = number;
  return progress;
}

}  // namespace muster::agents
