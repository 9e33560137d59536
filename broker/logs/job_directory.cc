#include "broker/logs/job_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "broker/logs/disk.h"
#include "fmt/format.h"

namespace muster::logs {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<LogState, std::string_view> kStateNames[] = {
    {LogState::kOpen, "open"}, {LogState::kDone, "done"}, {LogState::kCut, "cut"}};

absl::Status ToStatus(const std::error_code& error, std::string_view what) {
  return error ? SystemError(error.value(), what) : absl::OkStatus();
}

template <typename Number>
bool TakeNumber(std::string_view* text, char end, Number* number) {
  const char* last = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), last, *number);
  if (error != std::errc() || stop == last || *stop != end) return false;
  text->remove_prefix(stop - text->data() + 1);
  return true;
}

std::optional<std::pair<LogName, LogState>> ParseLogFileName(std::string_view text) {
  LogName name;
  int stream = 0;
  if (!TakeNumber(&text, '-', &name.run) || !TakeNumber(&text, '-', &name.rank) ||
      !TakeNumber(&text, '.', &stream)) {
    return std::nullopt;
  }
  name.stream = static_cast<v1::LogStream>(stream);
  for (const auto& [state, ending] : kStateNames) {
    if (text == ending) return std::pair(name, state);
  }
  return std::nullopt;
}

std::optional<RankName> ParseOrderFileName(std::string_view text) {
  RankName name;
  if (!TakeNumber(&text, '-', &name.run) || !TakeNumber(&text, '.', &name.rank)) {
    return std::nullopt;
  }
  return text == "order" ? std::optional(name) : std::nullopt;
}

fs::path ExpiredPath(const fs::path& root, uint64_t job) {
  return BucketPath(root, job) / "expired";
}

// Reads the job's bit in the file of its bucket.
absl::StatusOr<bool> ReadExpiredBit(const fs::path& root, uint64_t job) {
  const auto file = OpenFile(ExpiredPath(root, job), O_RDONLY);
  if (absl::IsNotFound(file.status())) return false;
  if (!file.ok()) return file.status();
  const uint64_t place = job % kJobsPerBucket;
  const auto byte = ReadAt(file->get(), place / 8, 1, kArchive);
  if (!byte.ok()) return byte.status();
  return !byte->empty() && (static_cast<uint8_t>(byte->front()) >> place % 8 & 1) != 0;
}

absl::Status SetExpiredBit(const fs::path& root, uint64_t job) {
  const auto file = OpenFile(ExpiredPath(root, job), O_RDWR | O_CREAT);
  if (!file.ok()) return file.status();
  const uint64_t place = job % kJobsPerBucket;
  auto byte = ReadAt(file->get(), place / 8, 1, kArchive);
  if (!byte.ok()) return byte.status();
  if (byte->empty()) byte->push_back('\0');
  byte->front() = static_cast<char>(static_cast<uint8_t>(byte->front()) | 1u << place % 8);
  size_t written = 0;
  if (auto status = WriteAt(file->get(), *byte, place / 8, kArchive, &written); !status.ok())
    return status;
  if (auto status = SyncData(file->get(), kArchive); !status.ok()) return status;
  return SyncDirectory(BucketPath(root, job));
}

absl::StatusOr<std::vector<uint64_t>> ListNumberedDirectories(const fs::path& directory) {
  std::vector<uint64_t> numbers;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    uint64_t number = 0;
    const auto [stop, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (bad == std::errc() && stop == name.data() + name.size()) numbers.push_back(number);
  }
  if (error) return SystemError(error.value(), fmt::format("list {}", directory.native()));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

fs::path BucketPath(const fs::path& root, uint64_t job) {
  return root / fmt::format("{}", job / kJobsPerBucket);
}

fs::path JobPath(const fs::path& root, uint64_t job) {
  return BucketPath(root, job) / fmt::format("{}", job);
}

fs::path LogPath(const fs::path& root, uint64_t job, const LogName& name, LogState state) {
  std::string_view ending;
  for (const auto& [known, text] : kStateNames) {
    if (known == state) ending = text;
  }
  return JobPath(root, job) /
         fmt::format("{}-{}-{}.{}", name.run, name.rank, static_cast<int>(name.stream), ending);
}

fs::path SumsPath(const fs::path& root, uint64_t job, const LogName& name) {
  return LogPath(root, job, name, LogState::kOpen).replace_extension("sums");
}

fs::path OrderPath(const fs::path& root, uint64_t job, const RankName& name) {
  return JobPath(root, job) / fmt::format("{}-{}.order", name.run, name.rank);
}

absl::StatusOr<FoundJob> FindJob(const fs::path& root, uint64_t job) {
  FoundJob found;
  const auto expired = ReadExpiredBit(root, job);
  if (!expired.ok()) return expired.status();
  found.expired = *expired;
  const fs::path directory = JobPath(root, job);
  struct stat attributes = {};
  if (stat(directory.c_str(), &attributes) != 0) {
    if (errno == ENOENT) return found;
    return SystemError(errno, fmt::format("look at {}", directory.native()));
  }
  found.exists = true;
  found.ended = absl::TimeFromTimespec(attributes.st_mtim);
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().native();
    const auto parsed = ParseLogFileName(name);
    const auto order = ParseOrderFileName(name);
    if (!parsed && !order) continue;
    const uint64_t size = it->file_size(error);
    if (error) break;
    if (order) found.marks[*order] = size / kMarkBytes;
    if (parsed) found.logs[parsed->first] = FoundLog{.state = parsed->second, .size = size};
  }
  if (error) return SystemError(error.value(), fmt::format("list {}", directory.native()));
  return found;
}

absl::StatusOr<IntactPart> RecoverLog(const fs::path& root, uint64_t job, const LogName& name) {
  const fs::path path = LogPath(root, job, name, LogState::kOpen);
  const auto file = OpenFile(path, O_RDWR);
  if (!file.ok()) return file.status();
  const auto sums = OpenFile(SumsPath(root, job, name), O_RDONLY);
  if (!sums.ok() && !absl::IsNotFound(sums.status())) return sums.status();
  auto intact = sums.ok() ? CheckSums(file->get(), sums->get()) : IntactPart{};
  if (intact.ok() && ftruncate(file->get(), static_cast<off_t>(intact->bytes)) != 0) {
    return SystemError(errno, fmt::format("cut {}", path.native()));
  }
  return intact;
}

absl::StatusOr<uint64_t> RecoverOrder(const fs::path& root, uint64_t job, const RankName& name,
                                      const OrderMark& sizes) {
  const fs::path path = OrderPath(root, job, name);
  const auto file = OpenFile(path, O_RDWR);
  if (!file.ok()) return file.status();
  auto marks = CountMarksWithin(file->get(), sizes);
  if (marks.ok() && ftruncate(file->get(), static_cast<off_t>(*marks * kMarkBytes)) != 0) {
    return SystemError(errno, fmt::format("cut {}", path.native()));
  }
  return marks;
}

absl::Status MakeJobDirectory(const fs::path& root, uint64_t job) {
  constexpr mode_t kOwnerOnly = 0700;
  for (const fs::path& directory : {BucketPath(root, job), JobPath(root, job)}) {
    if (mkdir(directory.c_str(), kOwnerOnly) != 0 && errno != EEXIST) {
      return SystemError(errno, fmt::format("make {}", directory.native()));
    }
  }
  return absl::OkStatus();
}

absl::Status RenameLog(const fs::path& root, uint64_t job, const LogName& name, LogState state,
                       absl::Time now) {
  const fs::path from = LogPath(root, job, name, LogState::kOpen);
  const fs::path to = LogPath(root, job, name, state);
  if (rename(from.c_str(), to.c_str()) != 0) {
    return SystemError(errno, fmt::format("rename {}", from.native()));
  }
  // A file that stays after a crash does no harm and goes with the job.
  unlink(SumsPath(root, job, name).c_str());
  const timespec times[2] = {absl::ToTimespec(now), absl::ToTimespec(now)};
  // A failure to set the time is no reason to refuse the end: only retention reads it.
  utimensat(AT_FDCWD, JobPath(root, job).c_str(), times, 0);
  return absl::OkStatus();
}

absl::Status SyncNames(const fs::path& root, uint64_t job, bool parents) {
  auto status = SyncDirectory(JobPath(root, job));
  if (status.ok() && parents) status = SyncDirectory(BucketPath(root, job));
  if (status.ok() && parents) status = SyncDirectory(root);
  return status;
}

absl::Status RemoveJob(const fs::path& root, uint64_t job) {
  if (auto status = SetExpiredBit(root, job); !status.ok()) return status;
  std::error_code error;
  fs::remove_all(JobPath(root, job), error);
  return ToStatus(error, fmt::format("remove {}", JobPath(root, job).native()));
}

absl::StatusOr<std::vector<uint64_t>> ListBuckets(const fs::path& root) {
  return ListNumberedDirectories(root);
}

absl::StatusOr<std::vector<uint64_t>> ListJobs(const fs::path& root, uint64_t bucket) {
  return ListNumberedDirectories(root / fmt::format("{}", bucket));
}

}  // namespace muster::logs
