#include "agents/kubernetes/given_up.h"

#include <utility>
#include <vector>

#include "agents/hosts/private_modes.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// A failure quotes a few Events and conditions of a thousand bytes each.
constexpr size_t kMaxFailureBytes = 1 << 20;

}  // namespace

GivenUpRuns::GivenUpRuns(std::string directory) : directory_(std::move(directory)) {
  // Without the directory there are none.
  const absl::StatusOr<std::vector<std::string>> names = host_.ListDirectory(directory_);
  if (!names.ok()) return;
  for (const std::string& run_key : *names) {
    const absl::StatusOr<std::string> text = host_.ReadFile(PathOf(run_key), kMaxFailureBytes);
    v1::Failure failure;
    if (text.ok() && failure.ParseFromString(*text)) failures_[run_key] = std::move(failure);
  }
}

absl::Status GivenUpRuns::Add(const std::string& run_key, const v1::Failure& failure) {
  if (Find(run_key).has_value()) return absl::OkStatus();  // the first reason stands
  absl::Status status = host_.MakeDirectories(directory_, hosts::kPrivateDirectory);
  if (status.ok()) {
    status =
        host_.WriteFile(PathOf(run_key), failure.SerializeAsString(), {.mode = 0600, .sync = true});
  }
  if (!status.ok()) return status;
  const MutexLock lock(mutex_);
  failures_[run_key] = failure;
  return absl::OkStatus();
}

std::optional<v1::Failure> GivenUpRuns::Find(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  const auto found = failures_.find(run_key);
  if (found == failures_.end()) return std::nullopt;
  return found->second;
}

void GivenUpRuns::Forget(const std::string& run_key) {
  {
    const MutexLock lock(mutex_);
    if (failures_.erase(run_key) == 0) return;
  }
  // One that stays is forgotten by the next start.
  (void)host_.RemoveTree(PathOf(run_key));
}

void GivenUpRuns::KeepOnly(const std::set<std::string>& run_keys) {
  std::vector<std::string> others;
  {
    const MutexLock lock(mutex_);
    for (const auto& [run_key, failure] : failures_) {
      if (!run_keys.contains(run_key)) others.push_back(run_key);
    }
  }
  for (const std::string& run_key : others) Forget(run_key);
}

}  // namespace muster::kubernetes
