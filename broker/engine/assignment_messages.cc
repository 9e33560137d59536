#include "broker/engine/assignment_messages.h"

#include <cstdint>
#include <string>
#include <utility>

namespace muster::broker {
namespace {

// Enough for all specs between submit and assignment on a broker that keeps up; others are read
// from the store.
constexpr size_t kMaxCachedSpecs = 4'000;
constexpr size_t kMaxCachedSpecBytes = 64 << 20;

}  // namespace

AssignmentMessages::AssignmentMessages() : specs_(kMaxCachedSpecs, kMaxCachedSpecBytes) {}

void AssignmentMessages::Remember(const core::Changes& committed) {
  for (const core::Change& change : committed) {
    if (const auto* job = std::get_if<core::InsertJob>(&change)) {
      specs_.Put(job->id, {job->spec, job->user});
    }
    // An edited job's next run has another spec.
    if (const auto* edit = std::get_if<core::EditJob>(&change)) specs_.Take(edit->id);
  }
}

bool AssignmentMessages::FillFromMemory(std::vector<agent::v1::Assignment>& assignments) {
  bool is_all = true;
  for (agent::v1::Assignment& assignment : assignments) {
    // Only the store knows the earlier runs.
    const bool is_first = assignment.run() == 1;
    if (auto cached = is_first ? specs_.Take(assignment.job_id()) : std::nullopt) {
      *assignment.mutable_spec() = *cached->spec;
      assignment.set_user(std::move(cached->user));
    } else {
      is_all = false;
    }
  }
  return is_all;
}

absl::Status AssignmentMessages::FillFromStore(const store::Store& store,
                                               std::vector<agent::v1::Assignment>& assignments) {
  std::vector<uint64_t> ids;
  std::vector<agent::v1::Assignment*> missing;
  for (agent::v1::Assignment& assignment : assignments) {
    if (assignment.has_spec()) continue;
    ids.push_back(assignment.job_id());
    missing.push_back(&assignment);
  }
  if (ids.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<store::StoredSpec>> stored = store.GetSpecs(store::Scope::All(), ids);
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

std::vector<agent::v1::ConnectResponse> AssignmentMessages::Pack(
    std::vector<agent::v1::Assignment> assignments) {
  std::vector<agent::v1::ConnectResponse> messages;
  size_t bytes = 0;  // size of the last message
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

}  // namespace muster::broker
