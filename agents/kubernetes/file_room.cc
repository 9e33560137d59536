#include "agents/kubernetes/file_room.h"

#include <algorithm>

#include "agents/kubernetes/manifest/brought_files.h"
#include "agents/kubernetes/objects/objects.h"
#include "contract/text.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

uint64_t SumOf(const std::map<std::string, uint64_t>& bytes) {
  uint64_t sum = 0;
  for (const auto& [run_key, count] : bytes) sum += count;
  return sum;
}

}  // namespace

class FileRoom::Sink final : public ObjectSink {
 public:
  Sink(FileRoom* room, std::string name_space, ObjectSink* next)
      : room_(*room), name_space_(std::move(name_space)), next_(*next) {}

  void OnAll(std::vector<Json> objects) override {
    RunBytes jobs;
    for (const Json& object : objects) {
      if (const uint64_t bytes = ArchiveBytesOf(object); bytes > 0)
        jobs[ParseJob(object).name.run_key] = bytes;
    }
    // First, so that whoever hears of a Job that is gone finds its room.
    room_.SetListed(name_space_, std::move(jobs));
    next_.OnAll(std::move(objects));
  }
  void OnChange(Json object) override {
    if (const uint64_t bytes = ArchiveBytesOf(object); bytes > 0)
      room_.SetListed(name_space_, ParseJob(object).name.run_key, bytes);
    next_.OnChange(std::move(object));
  }
  void OnDelete(Json object) override {
    if (ArchiveBytesOf(object) > 0) room_.SetListed(name_space_, ParseJob(object).name.run_key, 0);
    next_.OnDelete(std::move(object));
  }

 private:
  FileRoom& room_;
  const std::string name_space_;
  ObjectSink& next_;
};

std::unique_ptr<ObjectSink> FileRoom::Listen(std::string name_space, ObjectSink* next) {
  return std::make_unique<Sink>(this, std::move(name_space), next);
}

void FileRoom::SetListed(const std::string& name_space, RunBytes jobs) {
  const std::lock_guard lock(mutex_);
  for (const auto& [run_key, bytes] : jobs) taken_.erase(run_key);
  RunBytes& known = listed_[name_space];
  listed_bytes_ += SumOf(jobs) - SumOf(known);
  known = std::move(jobs);
}

void FileRoom::SetListed(const std::string& name_space, const std::string& run_key,
                         uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  taken_.erase(run_key);
  RunBytes& known = listed_[name_space];
  const auto job = known.find(run_key);
  if (job != known.end()) {
    listed_bytes_ -= job->second;
    known.erase(job);
  }
  if (bytes == 0) return;
  known[run_key] = bytes;
  listed_bytes_ += bytes;
}

bool FileRoom::IsListedLocked(const std::string& run_key) const {
  return std::any_of(listed_.begin(), listed_.end(),
                     [&](const auto& jobs) { return jobs.second.contains(run_key); });
}

absl::Status FileRoom::AskLocked(const Waiting& who) const {
  const uint64_t used = listed_bytes_ + SumOf(taken_);
  uint64_t before = 0;
  for (const auto& [run_key, other] : waiting_) {
    if (other.turn < who.turn) before += other.bytes;
  }
  if (used + before + who.bytes <= max_bytes_) return absl::OkStatus();
  using contract::FormatBytes;
  return absl::ResourceExhaustedError(ToAbsl(fmt::format(
      "the job brings an archive of {} along; those of other Jobs here have {} of the {} that "
      "Kubernetes may be given at a time{}; it waits until some of them are gone (cancel, or a "
      "shorter kubernetes.time_to_live; data belongs onto a volume, or into the image)",
      FormatBytes(who.bytes), FormatBytes(used), FormatBytes(max_bytes_),
      before > 0 ? fmt::format(", and {} wait before it", FormatBytes(before)) : "")));
}

absl::Status FileRoom::Take(const std::string& run_key, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (taken_.contains(run_key) || IsListedLocked(run_key)) return absl::OkStatus();
  const auto [entry, is_new] = waiting_.try_emplace(run_key, Waiting{bytes, next_turn_});
  if (is_new) ++next_turn_;
  if (absl::Status status = AskLocked(entry->second); !status.ok()) return status;
  waiting_.erase(entry);
  taken_[run_key] = bytes;
  return absl::OkStatus();
}

absl::Status FileRoom::Ask(const std::string& run_key) const {
  const std::lock_guard lock(mutex_);
  const auto entry = waiting_.find(run_key);
  return entry == waiting_.end() ? absl::OkStatus() : AskLocked(entry->second);
}

void FileRoom::Leave(const std::string& run_key) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(run_key);
  taken_.erase(run_key);
}

}  // namespace muster::kubernetes
