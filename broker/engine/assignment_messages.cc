#include "broker/engine/assignment_messages.h"

#include <cstdint>
#include <string>
#include <utility>

#include "contract/dependencies.h"
#include "contract/states.h"

namespace muster::broker {
namespace {

// Enough for all specs between submit and assignment on a broker that keeps up; others are read
// from the store.
constexpr size_t kMaxCachedSpecs = 4'000;
constexpr size_t kMaxCachedSpecBytes = 64 << 20;

// Tells the program how the jobs ended that its own depends on. Agents need not know which.
absl::Status TellEnds(const store::Store& store, v1::JobSpec* spec) {
  if (spec->depends_on_size() == 0) return absl::OkStatus();
  std::vector<uint64_t> ids;
  for (const v1::JobDependency& one : spec->depends_on()) ids.push_back(one.job_id());
  const absl::StatusOr<std::vector<v1::JobState>> states = store.GetStates(ids);
  if (!states.ok()) return states.status();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!contract::IsTerminal((*states)[i])) continue;  // deleted
    (*spec->mutable_env())[contract::DependencyVariable(ids[i])] = contract::Name((*states)[i]);
  }
  spec->clear_depends_on();
  return absl::OkStatus();
}

}  // namespace

AssignmentMessages::AssignmentMessages() : specs_(kMaxCachedSpecs, kMaxCachedSpecBytes) {}

void AssignmentMessages::Remember(const core::Changes& committed) {
  for (const core::Change& change : committed) {
    const auto* job = std::get_if<core::InsertJob>(&change);
    // Only the store knows the ends of the jobs that this one depends on.
    if (job != nullptr && job->spec->depends_on_size() == 0) {
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
    if (absl::Status status = TellEnds(store, &(*stored)[i].spec); !status.ok()) return status;
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
