#include "agents/kubernetes/file_room.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agents/kubernetes/manifest/brought_files.h"
#include "agents/kubernetes/objects/objects.h"
#include "contract/counted.h"
#include "contract/text.h"
#include "contract/units.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// An archive that is gone is written down by the minute from which it counts no more, so in one
// line for each minute of kUntilCompacted and two more; each has two numbers of at most 20 digits.
constexpr size_t kMaxWrittenBytes = 1024;

// It counts since the epoch. A whole minute is its own, so that reading and writing it again moves
// nothing.
int64_t MinuteOf(absl::Time time) {
  return absl::ToUnixSeconds(time + absl::Minutes(1) - absl::Nanoseconds(1)) / 60;
}

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
    // First, so that whoever learns that a Job is gone finds its room.
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

FileRoom::FileRoom(FileRoomOptions options) : options_(std::move(options)), start_(options_.now()) {
  if (!options_.path.empty()) ReadWritten();
}

// The first line has how much there was; each other one how much was gone, and until when it
// counts.
void FileRoom::ReadWritten() {
  const MutexLock lock(mutex_);
  const absl::StatusOr<std::string> text = host_.ReadFile(options_.path, kMaxWrittenBytes);
  // Without the file there was nothing.
  if (!text.ok()) return;
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n', absl::SkipEmpty());
  if (lines.empty() || !absl::SimpleAtoi(lines[0], &unlisted_bytes_)) return;
  written_ = *text;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::pair<std::string, std::string> words =
        absl::StrSplit(lines[i], absl::MaxSplits(' ', 1));
    uint64_t bytes = 0;
    int64_t until_s = 0;
    if (!absl::SimpleAtoi(words.first, &bytes) || !absl::SimpleAtoi(words.second, &until_s))
      continue;
    // The clock may have been set back since.
    gone_.push_back({std::min(absl::FromUnixSeconds(until_s), start_ + kUntilCompacted), bytes});
  }
}

std::unique_ptr<ObjectSink> FileRoom::Listen(std::string name_space, ObjectSink* next) {
  const MutexLock lock(mutex_);
  ++namespaces_;
  return std::make_unique<Sink>(this, std::move(name_space), next);
}

void FileRoom::SetListed(const std::string& name_space, RunBytes jobs) {
  const MutexLock lock(mutex_);
  const bool is_first = !listed_.contains(name_space);
  RunBytes& known = listed_[name_space];
  for (const auto& [run_key, bytes] : jobs) {
    // Archives that another run took before belong to the time before the start.
    if (taken_.erase(run_key) == 0 && is_first) unlisted_bytes_ -= std::min(unlisted_bytes_, bytes);
  }
  for (const auto& [run_key, bytes] : known) {
    if (!jobs.contains(run_key)) LoseLocked(bytes);
  }
  listed_bytes_ += SumOf(jobs) - SumOf(known);
  known = std::move(jobs);
  if (unlisted_bytes_ > 0 && listed_.size() == namespaces_) {
    LoseLocked(unlisted_bytes_);
    unlisted_bytes_ = 0;
  }
}

void FileRoom::SetListed(const std::string& name_space, const std::string& run_key,
                         uint64_t bytes) {
  const MutexLock lock(mutex_);
  taken_.erase(run_key);
  RunBytes& known = listed_[name_space];
  const auto job = known.find(run_key);
  if (job != known.end()) {
    listed_bytes_ -= job->second;
    if (bytes == 0) LoseLocked(job->second);
    known.erase(job);
  }
  if (bytes == 0) return;
  known[run_key] = bytes;
  listed_bytes_ += bytes;
}

bool FileRoom::HasRoomLocked(const std::string& run_key) const {
  return taken_.contains(run_key) ||
         std::any_of(listed_.begin(), listed_.end(),
                     [&](const auto& jobs) { return jobs.second.contains(run_key); });
}

void FileRoom::LoseLocked(uint64_t bytes) {
  const absl::Time now = options_.now();
  while (!gone_.empty() && gone_.front().until <= now) gone_.pop_front();
  gone_.push_back({now + kUntilCompacted, bytes});
}

uint64_t FileRoom::PresentLocked() const {
  const uint64_t unlisted = options_.now() < start_ + kUntilCompacted ? unlisted_bytes_ : 0;
  return listed_bytes_ + SumOf(taken_) + unlisted;
}

uint64_t FileRoom::GoneLocked() const {
  const absl::Time now = options_.now();
  uint64_t bytes = 0;
  for (const Gone& gone : gone_) bytes += gone.until > now ? gone.bytes : 0;
  return bytes;
}

absl::Status FileRoom::AskLocked(const Waiting& who) const {
  const uint64_t used = UsedLocked();
  uint64_t before = 0;
  for (const auto& [run_key, other] : waiting_) {
    if (other.turn < who.turn && who.bytes > kSmallArchiveBytes) before += other.bytes;
  }
  if (used + before + who.bytes <= options_.max_bytes) return absl::OkStatus();
  using contract::FormatBytes;
  return absl::ResourceExhaustedError(ToAbsl(fmt::format(
      "the job brings along an archive of {}; those of other Jobs here have {} of the {} that "
      "Kubernetes may be given at a time{}; it waits until some of them are gone, and {} longer, "
      "which is when the cluster's etcd gives them up (data belongs onto a volume, or into the "
      "image)",
      FormatBytes(who.bytes), FormatBytes(used), FormatBytes(options_.max_bytes),
      before > 0 ? fmt::format(", and {} wait before it", FormatBytes(before)) : "",
      contract::FormatDuration(kUntilCompacted))));
}

absl::Status FileRoom::WriteLocked(uint64_t more) {
  if (options_.path.empty()) return absl::OkStatus();
  const absl::Time now = options_.now();
  std::map<int64_t, uint64_t> gone;  // by the minute from which it counts no more
  for (const Gone& one : gone_) {
    if (one.until > now) gone[MinuteOf(one.until)] += one.bytes;
  }
  std::string text = fmt::format("{}\n", PresentLocked() + more);
  for (const auto& [minute, bytes] : gone) text += fmt::format("{} {}\n", bytes, minute * 60);
  if (text == written_) return absl::OkStatus();
  absl::Status status = host_.WriteFile(options_.path, text, {.mode = 0600, .sync = true});
  if (status.ok()) written_ = std::move(text);
  return status;
}

absl::Status FileRoom::Take(const std::string& run_key, uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (HasRoomLocked(run_key)) {
    waiting_.erase(run_key);
    return absl::OkStatus();
  }
  const auto [entry, is_new] = waiting_.try_emplace(run_key, Waiting{bytes, next_turn_});
  if (is_new) ++next_turn_;
  if (absl::Status status = AskLocked(entry->second); !status.ok()) return status;
  if (absl::Status status = WriteLocked(bytes); !status.ok()) return status;
  waiting_.erase(entry);
  taken_[run_key] = bytes;
  return absl::OkStatus();
}

absl::Status FileRoom::Try(uint64_t bytes) const {
  const MutexLock lock(mutex_);
  return AskLocked({bytes, next_turn_});
}

void FileRoom::Leave(const std::string& run_key) {
  const MutexLock lock(mutex_);
  waiting_.erase(run_key);
  const auto taken = taken_.find(run_key);
  if (taken == taken_.end()) return;
  // Nobody tells how much of it was sent.
  LoseLocked(taken->second);
  taken_.erase(taken);
}

void FileRoom::GiveBack(const std::string& run_key) {
  const MutexLock lock(mutex_);
  waiting_.erase(run_key);
  taken_.erase(run_key);
}

std::string FileRoom::Settle() {
  const MutexLock lock(mutex_);
  if (const absl::Status status = WriteLocked(/*more=*/0); !status.ok())
    return fmt::format("{} cannot be written: {}", options_.path, ToStd(status.message()));
  if (waiting_.empty()) return "";
  uint64_t bytes = 0;
  for (const auto& [run_key, waiting] : waiting_) bytes += waiting.bytes;
  return fmt::format(
      "{} runs wait, because what they bring along ({}) and what others have brought ({}) is more "
      "than the {} that Kubernetes may be given at a time",
      waiting_.size(), contract::FormatBytes(bytes), contract::FormatBytes(UsedLocked()),
      contract::FormatBytes(options_.max_bytes));
}

}  // namespace muster::kubernetes
