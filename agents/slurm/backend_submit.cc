// Submitting runs that ask for the same: one, or the tasks of an array of Slurm's.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/fresh_run.h"
#include "agents/slurm/outcomes.h"
#include "contract/errors.h"
#include "contract/run_key.h"
#include "contract/task_array.h"
#include "fmt/format.h"

namespace muster::slurm {

using agents::LaunchOutcome;

namespace {

bool HasAnswered(const SubmitOutcome& submitted) {
  return submitted.kind == LaunchOutcome::Kind::kRefused || !submitted.unknown_words.empty();
}

// Returns whether Slurm refuses an array because of an id that is too high.
bool IsTooLarge(const SubmitOutcome& submitted) {
  return HasAnswered(submitted) &&
         submitted.words.find("Invalid job array specification") != std::string::npos;
}

// Returns whether Slurm refuses an array of that many runs, but perhaps takes a smaller one.
bool IsTooManyTasks(const SubmitOutcome& submitted) {
  return (HasAnswered(submitted) && submitted.is_full) || IsTooLarge(submitted);
}

}  // namespace

// Submits runs that all ask for the same. The limits bound the number: a refused array leaves
// nothing behind, and its halves are tried. If not even one run has room any more, the rest has
// none either, and gets that answer without a call.
void SlurmBackend::SubmitAll(std::vector<Fresh> runs, std::vector<LaunchOutcome>* outcomes) {
  std::vector<std::vector<Fresh>> parts;  // the next one last
  parts.push_back(std::move(runs));
  std::optional<SubmitOutcome> full;
  while (!parts.empty()) {
    std::vector<Fresh> part = std::move(parts.back());
    parts.pop_back();
    if (!full.has_value()) {
      if (std::optional<LaunchOutcome> wait = AwaitOtherParts(part); wait.has_value()) {
        for (const Fresh& run : part) (*outcomes)[run.index] = *wait;
        continue;
      }
      const std::optional<SubmitOutcome> submitted = Submit(&part, outcomes);
      if (!submitted.has_value()) continue;
      if (part.size() > 1 && IsTooLarge(*submitted) && LearnMaxArraySize(part)) {
        parts.push_back(std::move(part));
        continue;
      }
      if (part.size() > 1 && IsTooManyTasks(*submitted)) {
        const auto middle = part.begin() + static_cast<ptrdiff_t>(part.size() / 2);
        parts.emplace_back(std::make_move_iterator(middle), std::make_move_iterator(part.end()));
        part.erase(middle, part.end());
        parts.push_back(std::move(part));
        continue;
      }
      if (submitted->is_full) full = submitted;
      Answer(part, *submitted, outcomes);
    } else {
      Answer(part, *full, outcomes);
    }
  }
}

absl::StatusOr<Submission> SlurmBackend::SubmissionOf(std::vector<Fresh>* runs) {
  GpuTypes gpu_types;
  {
    const MutexLock lock(mutex_);
    gpu_types = gpu_types_;
  }
  if (runs->size() > 1) {
    if (absl::Status status = NumberTasks(runs); !status.ok()) return status;
  }
  const Fresh& first = runs->front();
  const RunPaths paths = PathsOf(first.assignment->run_key());
  if (runs->size() == 1)
    return MakeSubmission(*first.assignment, paths, gpu_types, first.conversion);
  std::vector<std::string> keys;
  std::vector<uint32_t> tasks;
  for (const Fresh& run : *runs) {
    keys.push_back(run.assignment->run_key());
    tasks.push_back(run.task);
  }
  const absl::StatusOr<std::string> name = arrays_.Add(keys, tasks);
  if (!name.ok()) return NotWritten(name.status());
  const uint32_t limit = contract::FindArrayTask(first.assignment->spec())->limit;
  const TaskArray array{*name, arrays_.PathsFor(*name, keys.front()), std::move(tasks), limit};
  return MakeSubmission(*first.assignment, paths, gpu_types, first.conversion, &array);
}

// The ids are the user's, as far as the cluster has ids so high; else the tasks are counted from 0.
absl::Status SlurmBackend::NumberTasks(std::vector<Fresh>* runs) {
  size_t max_array_size = 0;
  {
    const MutexLock lock(mutex_);
    max_array_size = max_array_size_;
  }
  std::sort(runs->begin(), runs->end(), [](const Fresh& a, const Fresh& b) {
    return a.assignment->job_id() < b.assignment->job_id();
  });
  uint32_t highest = 0;
  for (Fresh& run : *runs) {
    run.task = contract::FindArrayTask(run.assignment->spec())->id;
    highest = std::max(highest, run.task);
  }
  if (highest >= max_array_size) {
    if (WaitsForSameTask(runs->front().assignment->spec())) {
      return contract::BadField(
          "slurm.dependency",
          fmt::format(
              "aftercorr waits for the task with the same id, and this cluster has ids of 0 "
              "to {} (MaxArraySize), not {}; use lower ids",
              max_array_size - 1, highest));
    }
    for (size_t i = 0; i < runs->size(); ++i) (*runs)[i].task = static_cast<uint32_t>(i);
  }
  return absl::OkStatus();
}

// Returns whether the same runs may be submitted again with ids that count from 0: it was an id
// above their number that was refused.
bool SlurmBackend::LearnMaxArraySize(const std::vector<Fresh>& refused) {
  uint32_t highest = 0;
  for (const Fresh& run : refused) highest = std::max(highest, run.task);
  const MutexLock lock(mutex_);
  max_array_size_ = std::min<size_t>(max_array_size_, highest);
  return refused.size() <= highest;
}

// Slurm counts the limit of an array ("%4") within one array of its own. So if not all of the tasks
// have come at once, those that came later wait until the others have ended. Nothing: submit them.
std::optional<LaunchOutcome> SlurmBackend::AwaitOtherParts(const std::vector<Fresh>& part) {
  if (part.front().likeness.empty()) return std::nullopt;
  const agent::v1::Assignment& first = *part.front().assignment;
  const contract::ArrayTask task = *contract::FindArrayTask(first.spec());
  auto key = contract::RunKey::Parse(first.run_key());
  if (task.limit == 0 || part.size() == task.count || !key.ok()) return std::nullopt;
  const uint64_t array = contract::ArrayNumber(first.job_id(), task);
  const MutexLock lock(mutex_);
  for (uint32_t place = 0; place < task.count; ++place) {
    key->job = array + place;
    const auto track = tracks_.find(key->ToString());
    if (track == tracks_.end() || !track->second.live.has_value()) continue;
    return Deferred(absl::UnavailableError(fmt::format(
        "not submitted yet: its array may have {} tasks at the same time (--array=...%{}), which "
        "Slurm counts within one array of its own, and it has others of them already (job {})",
        task.limit, task.limit, track->second.live->ToString())));
  }
  return std::nullopt;
}

}  // namespace muster::slurm
