#include "agents/slurm/patient_reads.h"

#include <chrono>

#include "fmt/format.h"

namespace muster::slurm {

bool PatientReads::Hangs() {
  const MutexLock lock(mutex_);
  return late_.valid() && late_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

absl::Status PatientReads::Await(const std::string& path, std::function<void()> read) {
  if (Hangs()) {
    return absl::UnavailableError(
        fmt::format("\"{}\" is not read: an earlier read of the same file server hangs", path));
  }
  const auto task = std::make_shared<std::packaged_task<void()>>(std::move(read));
  const std::shared_future<void> done = task->get_future().share();
  lane_.Post([task] { (*task)(); });
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience_);
  if (done.wait_until(end) == std::future_status::ready) return absl::OkStatus();
  const MutexLock lock(mutex_);
  late_ = done;
  return absl::UnavailableError(
      fmt::format("\"{}\" could not be read within {}: its file server hangs", path,
                  absl::FormatDuration(patience_)));
}

absl::Status PatientReads::State() {
  if (!Hangs()) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("a look at the runs' files has not ended after {}: a file server hangs; the ends "
                  "of runs wait for it",
                  absl::FormatDuration(patience_)));
}

absl::Status PatientReads::Do(const std::string& path,
                              std::function<absl::Status(hosts::Host*)> act) {
  const auto result = std::make_shared<absl::Status>();
  absl::Status in_time =
      Await(path, [this, result, act = std::move(act)] { *result = act(&host_); });
  return in_time.ok() ? *result : in_time;
}

absl::StatusOr<std::vector<std::string>> PatientReads::ListDirectory(const std::string& path) {
  return Read<std::vector<std::string>>(path, [this, path] { return host_.ListDirectory(path); });
}

std::vector<absl::StatusOr<std::string>> PatientReads::ReadMany(
    const std::vector<hosts::FilePart>& parts) {
  if (parts.empty()) return {};
  using Texts = std::vector<absl::StatusOr<std::string>>;
  absl::StatusOr<Texts> texts =
      Read<Texts>(parts.front().path,
                  [this, parts]() -> absl::StatusOr<Texts> { return host_.ReadMany(parts); });
  return texts.ok() ? *std::move(texts) : Texts(parts.size(), texts.status());
}

absl::StatusOr<hosts::FileInfo> PatientReads::Stat(const std::string& path) {
  return Read<hosts::FileInfo>(path, [this, path] { return host_.Stat(path); });
}

absl::StatusOr<std::string> PatientReads::ReadFile(const std::string& path, size_t max_bytes) {
  return Read<std::string>(path,
                           [this, path, max_bytes] { return host_.ReadFile(path, max_bytes); });
}

absl::StatusOr<std::string> PatientReads::ReadFileRange(const std::string& path, uint64_t offset,
                                                        size_t max_bytes) {
  return Read<std::string>(path, [this, path, offset, max_bytes] {
    return host_.ReadFileRange(path, offset, max_bytes);
  });
}

}  // namespace muster::slurm
