#include "clients/cli/uploading.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "clients/cli/progress_line.h"
#include "clients/cpp/local_uploads.h"
#include "contract/counted.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

using client::LocalTree;
using client::MissingFiles;
using contract::FormatBytes;

struct Reading {
  std::vector<LocalTree> trees;
  MissingFiles missing;
};

absl::StatusOr<Reading> Read(Session& session, client::JobFile* file) {
  const auto max_job_bytes = client::MaxJobBytes(&session.client);
  if (!max_job_bytes.ok()) return max_job_bytes.status();
  auto trees = client::ReadLocalUploads(*max_job_bytes, file);
  if (!trees.ok()) return trees.status();
  auto missing = client::FindMissing(&session.client, *trees);
  if (!missing.ok()) return missing.status();
  return Reading{*std::move(trees), *std::move(missing)};
}

std::string FilesText(uint64_t count, uint64_t bytes) {
  return fmt::format("{} of {}B", contract::Counted(count, "file"), FormatBytes(bytes));
}

std::string SummaryOf(const Reading& reading) {
  uint64_t count = 0;
  uint64_t bytes = 0;
  for (const LocalTree& tree : reading.trees) {
    bytes += tree.tree.total_bytes();
    for (const auto& entry : tree.tree.entries())
      count += entry.kind() == v1::FILE_KIND_FILE ? 1 : 0;
  }
  // The trees' own files are no files of the user's.
  uint64_t lacking = 0;
  uint64_t lacking_bytes = 0;
  for (const client::FileToSend& file : reading.missing.files) {
    if (file.path.empty()) continue;
    ++lacking;
    lacking_bytes += file.size_bytes;
  }
  return fmt::format("brings along {}; the broker lacks {}", FilesText(count, bytes),
                     lacking == 0 ? "none of them" : FilesText(lacking, lacking_bytes));
}

absl::Status SendMissing(Session& session, const MissingFiles& missing) {
  if (missing.files.empty()) return absl::OkStatus();
  const std::string what = FilesText(missing.files.size(), missing.bytes);
  ProgressLine progress(&session.terminal, fmt::format("uploading {}", what));
  const absl::Status status = client::SendFiles(&session.client, missing, [&](uint64_t sent_bytes) {
    progress.Show(sent_bytes, missing.bytes);
  });
  progress.Clear();
  if (status.ok()) session.terminal.Note(fmt::format("uploaded {}", what));
  return status;
}

// Clusters can find faults of the files by their list alone, which is small: the broker has it
// before it is asked.
absl::Status SendTrees(Session& session, MissingFiles* missing) {
  MissingFiles trees;
  MissingFiles others;
  for (client::FileToSend& file : missing->files) {
    MissingFiles& sort = file.path.empty() ? trees : others;
    sort.bytes += file.size_bytes;
    sort.files.push_back(std::move(file));
  }
  *missing = std::move(others);
  if (trees.files.empty()) return absl::OkStatus();
  return client::SendFiles(&session.client, trees, [](uint64_t) {});
}

}  // namespace

absl::StatusOr<std::string> ReadUploads(Session& session, client::JobFile* file) {
  if (file->local_uploads.empty()) return "";
  auto reading = Read(session, file);
  if (!reading.ok()) return reading.status();
  const std::string summary = SummaryOf(*reading);
  if (absl::Status status = SendTrees(session, &reading->missing); !status.ok()) return status;
  return summary;
}

absl::Status SendUploads(Session& session, client::JobFile* file,
                         const std::function<absl::Status()>& check) {
  if (file->local_uploads.empty()) return absl::OkStatus();
  absl::Status status;
  for (int reading = 0; reading < kMaxReadings; ++reading) {
    auto read = Read(session, file);
    if (status = read.status(); absl::IsAborted(status)) continue;
    if (!status.ok()) return status;
    if (read->missing.files.empty()) return absl::OkStatus();
    if (status = SendTrees(session, &read->missing); !status.ok()) return status;
    if (status = check(); !status.ok()) return status;
    status = SendMissing(session, read->missing);
    if (!absl::IsAborted(status)) return status;
  }
  return absl::AbortedError(
      fmt::format("{}, {} times; submit again when nothing writes to it any more",
                  ToStd(status.message()), kMaxReadings));
}

}  // namespace muster::cli
