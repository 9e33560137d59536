#include "clients/cpp/job_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "clients/cpp/jobfile.h"
#include "contract/text.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;

bool IsJobFile(const fs::path& path) {
  const fs::path ending = path.extension();
  return ending == ".yaml" || ending == ".yml" || ending == ".json";
}

// The files that a path stands for.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unreadable;
    if (IsJobFile(entry->path()) && !entry->is_directory(unreadable))
      files.push_back(entry->path().string());
  }
  if (error) {
    return absl::InvalidArgumentError(ToAbsl(fmt::format("{}: {}", path, error.message())));
  }
  if (files.empty()) {
    return absl::InvalidArgumentError(ToAbsl(fmt::format(
        "{}: has no file that ends with .yaml, .yml or .json; subdirectories are not looked into",
        path)));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Puts the jobs of another file behind those that are there.
void Join(JobFile more, JobFile* all) {
  const size_t before = all->specs.size();
  std::move(more.specs.begin(), more.specs.end(), std::back_inserter(all->specs));
  all->places.Append(std::move(more.places));
  for (auto& [job, specs] : more.alternatives) all->alternatives[before + job] = std::move(specs);
  for (LocalUpload& upload : more.local_uploads) {
    upload.job += before;
    all->local_uploads.push_back(std::move(upload));
  }
  for (LocalSecret& secret : more.local_secrets) {
    secret.job += before;
    all->local_secrets.push_back(std::move(secret));
  }
  for (ExpectedKind& kind : more.expected_kinds) {
    kind.job += before;
    all->expected_kinds.push_back(std::move(kind));
  }
  all->contents.merge(more.contents);
  std::move(more.notes.begin(), more.notes.end(), std::back_inserter(all->notes));
}

}  // namespace

absl::StatusOr<JobFile> ReadJobFiles(const std::vector<std::string>& paths,
                                     const JobFileOptions& options) {
  JobFile all;
  for (const std::string& path : paths) {
    const auto files = FilesOf(path);
    if (!files.ok()) return files.status();
    for (const std::string& file : *files) {
      absl::StatusOr<JobFile> read = ReadJobFile(file, options);
      if (!read.ok()) return read.status();
      Join(*std::move(read), &all);
      if (all.specs.size() > kMaxJobsAtOnce) {
        return absl::InvalidArgumentError(ToAbsl(fmt::format(
            "{}: with this file there are more than {} jobs; submit fewer files at once", file,
            kMaxJobsAtOnce)));
      }
    }
  }
  return all;
}

}  // namespace muster::client
