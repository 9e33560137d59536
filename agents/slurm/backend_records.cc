// Reading the exit records of runs.
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/exit_record.h"

namespace muster::slurm {
namespace {

// At most this many exit records are read together; one read holds 64 MiB at most.
constexpr size_t kMaxRecordsInRead = 1000;

absl::StatusOr<std::optional<ExitRecord>> WholeRecord(std::string_view text) {
  std::optional<ExitRecord> record = ParseExitRecord(text);
  if (!record.has_value()) return absl::DataLossError("it is not whole");
  return record;
}

}  // namespace

std::map<std::string, SlurmBackend::MaybeRecord> SlurmBackend::ReadRecords(
    const std::vector<agents::RunHandle>& runs) {
  std::map<std::string, MaybeRecord> records;
  const auto names = reads_.ListDirectory(RunPaths::EndedDirectory(config_.run_dir));
  if (!names.ok()) {
    // A directory that is not found is an error, too: Probe has made it.
    for (const agents::RunHandle& run : runs) records.emplace(run.run_key, names.status());
    return records;
  }
  const std::set<std::string> there(names->begin(), names->end());
  std::vector<std::string> keys;
  for (const agents::RunHandle& run : runs) {
    if (there.contains(run.run_key)) keys.push_back(run.run_key);
  }
  ReadInto(keys, &records);
  return records;
}

void SlurmBackend::ReadInto(const std::vector<std::string>& keys,
                            std::map<std::string, MaybeRecord>* records) {
  for (size_t begin = 0; begin < keys.size(); begin += kMaxRecordsInRead) {
    const size_t end = std::min(keys.size(), begin + kMaxRecordsInRead);
    std::vector<hosts::FilePart> parts;
    for (size_t i = begin; i < end; ++i)
      parts.push_back({PathsOf(keys[i]).exit_record(), 0, kMaxExitRecordBytes});
    const std::vector<absl::StatusOr<std::string>> texts = ReadsOf(keys[begin]).ReadMany(parts);
    for (size_t i = begin; i < end; ++i) {
      const absl::StatusOr<std::string>& text = texts[i - begin];
      if (absl::IsNotFound(text.status())) continue;
      records->emplace(keys[i], text.ok() ? WholeRecord(*text) : text.status());
    }
  }
}

std::map<std::string, SlurmBackend::MaybeRecord> SlurmBackend::ReadUsersRecords(
    const std::vector<agents::RunHandle>& runs, const Queue& queue) {
  std::map<std::string, std::vector<std::string>> keys;  // by the directory of the user
  for (const agents::RunHandle& run : runs) {
    const auto [first, last] = queue.rows.equal_range(run.run_key);
    const bool is_live =
        std::any_of(first, last, [](const auto& row) { return !HasEnded(row.second.state.phase); });
    if (queue.was_asked && !is_live) keys[RootOf(run.run_key)].push_back(run.run_key);
  }
  std::map<std::string, MaybeRecord> records;
  for (const auto& [root, share] : keys) ReadInto(share, &records);
  return records;
}

}  // namespace muster::slurm
