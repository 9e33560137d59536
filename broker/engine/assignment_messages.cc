#include "broker/engine/assignment_messages.h"

#include <cstdint>
#include <string>
#include <utility>

namespace muster::broker {
namespace {

// What waits between submit and assignment on a broker that keeps up; more is read from the store.
constexpr size_t kMaxCachedSpecs = 4'000;
constexpr size_t kMaxCachedSpecBytes = 64 << 20;

}  // namespace

AssignmentMessages::AssignmentMessages(store::Store* store)
    : store_(store), specs_(kMaxCachedSpecs, kMaxCachedSpecBytes) {}

void AssignmentMessages::Remember(core::Changes& committed) {
  for (core::Change& change : committed) {
    if (auto* job = std::get_if<core::InsertJob>(&change)) {
      specs_.Put(job->id, {std::move(job->spec), std::move(job->user)});
    }
    // The spec of its next run is another one.
    if (const auto* edit = std::get_if<core::EditJob>(&change)) specs_.Take(edit->id);
  }
}

absl::StatusOr<std::vector<agent::v1::ConnectResponse>> AssignmentMessages::Make(
    std::vector<agent::v1::Assignment> assignments) {
  if (absl::Status status = AddSpecs(assignments); !status.ok()) return status;
  std::vector<agent::v1::ConnectResponse> messages;
  size_t bytes = 0;  // of the last one
  for (agent::v1::Assignment& assignment : assignments) {
    const size_t size = assignment.ByteSizeLong();
    const int count = messages.empty() ? 0 : messages.back().assignments().assignments_size();
    if (count == 0 || count == kMaxRunsPerMessage || bytes + size > kMaxBytesPerMessage) {
      messages.emplace_back();
      bytes = 0;
    }
    *messages.back().mutable_assignments()->add_assignments() = std::move(assignment);
    bytes += size;
  }
  return messages;
}

absl::Status AssignmentMessages::AddSpecs(std::vector<agent::v1::Assignment>& assignments) {
  std::vector<uint64_t> ids;
  std::vector<agent::v1::Assignment*> missing;
  for (agent::v1::Assignment& assignment : assignments) {
    // Of an earlier run only the store tells.
    const bool is_first = assignment.run() == 1;
    if (auto cached = is_first ? specs_.Take(assignment.job_id()) : std::nullopt) {
      *assignment.mutable_spec() = *cached->spec;
      assignment.set_user(std::move(cached->user));
    } else {
      ids.push_back(assignment.job_id());
      missing.push_back(&assignment);
    }
  }
  if (ids.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<store::StoredSpec>> stored = store_->GetSpecs(ids);
  if (!stored.ok()) return stored.status();
  for (size_t i = 0; i < missing.size(); ++i) {
    *missing[i]->mutable_spec() = std::move((*stored)[i].spec);
    missing[i]->set_user(std::move((*stored)[i].user));
    for (std::string& node : (*stored)[i].excluded_nodes) {
      missing[i]->add_excluded_nodes(std::move(node));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::broker
