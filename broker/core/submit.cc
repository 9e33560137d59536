#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "broker/core/event_bounds.h"
#include "broker/core/impl.h"
#include "broker/core/rerun_id.h"
#include "broker/core/submit_warnings.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/lacks.h"
#include "contract/sentences.h"
#include "contract/slurm_only.h"
#include "contract/slurm_options.h"
#include "contract/task_array.h"
#include "contract/text.h"

namespace muster::core {
namespace {

// A full queue drains as fast as jobs end, not as fast as requests come.
constexpr absl::Duration kRetryAfter = absl::Seconds(10);

// Returns the error of one request of several: its details say which, as `request`, and its message
// is the same as for that request alone.
absl::Status WithIndex(const absl::Status& status, size_t index) {
  const auto info = contract::GetErrorInfo(status);
  if (!info) return status;
  std::map<std::string, std::string> metadata(info->metadata().begin(), info->metadata().end());
  metadata["request"] = fmt::format("{}", index);
  absl::Status indexed = status;
  contract::SetMetadata(std::move(metadata), &indexed);
  return indexed;
}

}  // namespace

struct Core::Impl::Candidate {
  std::shared_ptr<const v1::JobSpec> spec;
  std::string request_id;
  RequestKey key;
  Fingerprint fingerprint = 0;
  bool is_held = false;
  bool is_remembered = false;  // by its request_id
  uint64_t rerun_of = 0;
  Requirements requirements;
  std::optional<size_t> same_as;  // index of an earlier, equal item of this submit
  uint64_t job = 0;               // 0: not accepted yet

  bool is_new() const { return job == 0 && !same_as; }
};

struct Core::Impl::Batch {
  std::vector<Candidate> candidates;
  absl::flat_hash_map<RequestKey, size_t> by_key;  // index of the first candidate of each
};

void Core::Impl::On(Submit& in, Step& step) {
  if (auto repeat = AnswerRepeat(in)) {
    step.out->effects.push_back(SubmitReply{in.ticket, *std::move(repeat)});
    return;
  }
  Batch batch;
  std::vector<Candidate>& candidates = batch.candidates;
  candidates.reserve(in.items.size());
  absl::Status status;
  for (const SubmitItem& item : in.items) {
    status = Examine(item, batch);
    if (status.ok()) continue;
    if (in.items.size() > 1) status = WithIndex(status, candidates.size());
    break;
  }
  if (in.rerun) {
    for (Candidate& candidate : candidates) {
      candidate.is_remembered = &candidate == &candidates.front();
      candidate.request_id = RerunId(in.rerun->request_id, candidate.is_remembered);
      candidate.key = RequestKeyOf("", candidate.request_id);
      candidate.fingerprint = in.rerun->fingerprint;
    }
  }
  if (status.ok() && !in.validate_only) status = CheckFiles(in.items, candidates);
  if (status.ok()) status = CheckRoom(candidates);
  LeaveSplitArrays(&candidates);
  if (!status.ok()) {
    step.out->effects.push_back(SubmitReply{in.ticket, std::move(status)});
    return;
  }
  v1::SubmitJobsResponse response;
  response.mutable_responses()->Reserve(static_cast<int>(candidates.size()));
  Warner warner(clusters_by_name_);
  for (Candidate& candidate : candidates) {
    v1::SubmitJobResponse* reply = response.add_responses();
    reply->set_repeated_request(!candidate.is_new());
    if (candidate.is_new()) warner.Warn(*candidate.spec, candidate.requirements, reply);
    if (in.validate_only) continue;
    if (candidate.same_as) candidate.job = candidates[*candidate.same_as].job;
    if (candidate.job == 0) candidate.job = Accept(candidate, in.user, step);
    reply->set_job_id(candidate.job);
  }
  step.out->effects.push_back(SubmitReply{in.ticket, std::move(response)});
}

std::optional<absl::StatusOr<v1::SubmitJobsResponse>> Core::Impl::AnswerRepeat(
    const Submit& in) const {
  if (!in.rerun) return std::nullopt;
  const std::string id = RerunId(in.rerun->request_id, /*is_first=*/true);
  const RequestMemory::Entry* entry = requests_.Find(RequestKeyOf("", id));
  if (entry == nullptr) return std::nullopt;
  if (entry->spec != in.rerun->fingerprint) {
    return contract::Error(
        absl::StatusCode::kAlreadyExists, "REQUEST_ID_REUSED",
        fmt::format("request_id {} was used to run other jobs again, from job {} on; a repeat must "
                    "name the same jobs or filter, another rerun another request_id",
                    contract::Quoted(in.rerun->request_id), entry->job),
        {{"request_id", in.rerun->request_id}});
  }
  v1::SubmitJobsResponse response;
  for (size_t i = 0; i < std::max<size_t>(in.items.size(), 1); ++i) {
    v1::SubmitJobResponse* reply = response.add_responses();
    reply->set_repeated_request(true);
    reply->set_job_id(entry->job);
  }
  return response;
}

absl::Status Core::Impl::Examine(const SubmitItem& item, Batch& batch) {
  Candidate candidate;
  candidate.spec = item.spec;
  candidate.request_id = item.request_id;
  candidate.rerun_of = item.rerun_of;
  if (!item.request_id.empty()) {
    candidate.is_remembered = true;
    candidate.fingerprint = item.fingerprint;
    candidate.key = RequestKeyOf(item.spec->project(), item.request_id);
    std::optional<Fingerprint> known;
    if (const RequestMemory::Entry* entry = requests_.Find(candidate.key)) {
      candidate.job = entry->job;
      known = entry->spec;
    }
    auto [earlier, first] = batch.by_key.emplace(candidate.key, batch.candidates.size());
    if (!known && !first) {
      candidate.same_as = earlier->second;
      known = batch.candidates[earlier->second].fingerprint;
    }
    if (known && *known != candidate.fingerprint) {
      return contract::Error(
          absl::StatusCode::kAlreadyExists, "REQUEST_ID_REUSED",
          fmt::format("request_id \"{}\" of project \"{}\" was used with another spec{}; a repeat "
                      "must carry the same spec, another job another request_id",
                      item.request_id, item.spec->project(),
                      candidate.job != 0 ? fmt::format(" for job {}", candidate.job) : ""),
          {{"request_id", item.request_id}});
    }
  }
  if (candidate.is_new()) {
    candidate.is_held = item.held || contract::IsHeldFromTheStart(*item.spec);
    candidate.requirements = RequirementsOf(*item.spec, item.archive_bytes);
    Group* alike = groups_.Find(candidate.requirements);
    int64_t unbounded = 0;
    if (alike != nullptr) Refit(alike, &unbounded);
    if (alike == nullptr || alike->project->lane->fits.empty()) {
      if (absl::Status status = CheckNamedClusters(*item.spec); !status.ok()) return status;
      if (absl::Status status = CheckPlaceable(*item.spec, candidate.requirements); !status.ok())
        return status;
    }
  }
  batch.candidates.push_back(std::move(candidate));
  return absl::OkStatus();
}

absl::Status Core::Impl::CheckNamedClusters(const v1::JobSpec& spec) const {
  for (const std::string& name : spec.placement().clusters()) {
    if (FindCluster(name) != nullptr) continue;
    return contract::Error(
        absl::StatusCode::kNotFound, "UNKNOWN_CLUSTER",
        fmt::format("placement.clusters names \"{}\", and no cluster of that name has ever "
                    "connected; {}",
                    name, KnownClusters()),
        {{"cluster", name}, {"field", "spec.placement.clusters"}});
  }
  return absl::OkStatus();
}

absl::Status Core::Impl::CheckPlaceable(const v1::JobSpec& spec,
                                        const Requirements& requirements) const {
  if (clusters_by_name_.empty()) return absl::OkStatus();
  for (const auto& [name, cluster] : clusters_by_name_) {
    if (CheckFit(requirements, cluster->saved).ever()) return absl::OkStatus();
  }
  const v1::StateReason lacks = contract::NotPlaced(LacksOf(requirements));
  absl::Status status =
      contract::Error(absl::StatusCode::kFailedPrecondition, "CANNOT_BE_PLACED",
                      contract::CannotBePlaced(lacks.message(), contract::WhySlurmOnly(spec),
                                               spec.placement().clusters_size() > 0));
  if (lacks.clusters_size() > 0) contract::AttachReason(lacks, &status);
  return status;
}

absl::Status Core::Impl::CheckFiles(const std::vector<SubmitItem>& items,
                                    const std::vector<Candidate>& candidates) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].is_new() && !items[i].files.ok()) return items[i].files;
  }
  return absl::OkStatus();
}

void Core::Impl::LeaveSplitArrays(std::vector<Candidate>* candidates) {
  const auto is_new = [](const Candidate& one) { return one.is_new(); };
  if (std::all_of(candidates->begin(), candidates->end(), is_new)) return;
  for (auto first = candidates->begin(); first != candidates->end();) {
    const auto task = contract::FindArrayTask(*first->spec);
    const auto left = static_cast<size_t>(candidates->end() - first);
    const auto end = first + static_cast<ptrdiff_t>(std::min<size_t>(task ? task->count : 1, left));
    const bool is_split = !std::all_of(first, end, is_new);
    for (; first != end; ++first) {
      if (is_split && first->is_new()) first->spec = contract::WithoutArray(*first->spec);
    }
  }
}

absl::Status Core::Impl::CheckRoom(const std::vector<Candidate>& candidates) const {
  uint64_t jobs = 0, requests = 0;
  for (const Candidate& candidate : candidates) {
    if (!candidate.is_new()) continue;
    ++jobs;
    if (candidate.is_remembered) ++requests;
  }
  if (jobs > 0 && queued_ + jobs > options_.max_queued_jobs) {
    return contract::RetryableError(
        absl::StatusCode::kResourceExhausted, "TOO_MANY_QUEUED_JOBS",
        fmt::format("{} jobs are queued, and the broker keeps at most {} (max_queued_jobs); try "
                    "again later",
                    queued_, options_.max_queued_jobs),
        kRetryAfter);
  }
  if (requests > 0 && requests_.size() + requests > options_.max_remembered_requests) {
    return contract::RetryableError(
        absl::StatusCode::kResourceExhausted, "TOO_MANY_REQUEST_IDS",
        fmt::format("{} request ids are remembered, and the broker keeps at most {} "
                    "(max_remembered_requests); try again later",
                    requests_.size(), options_.max_remembered_requests),
        kRetryAfter);
  }
  return absl::OkStatus();
}

uint64_t Core::Impl::Accept(Candidate& candidate, const std::string& user, Step& step) {
  Group* group = GroupFor(std::move(candidate.requirements));
  ++group->jobs;
  const uint64_t id = next_job_id_++;
  Job job;
  job.group = group->id;
  job.priority = static_cast<int16_t>(candidate.spec->priority());
  if (candidate.is_remembered) {
    job.request = requests_.Add({candidate.key, candidate.fingerprint, id});
  }
  InsertJob insert;
  insert.id = id;
  insert.spec = std::move(candidate.spec);
  insert.request_id = std::move(candidate.request_id);
  insert.fingerprint = candidate.fingerprint;
  insert.user = user;
  insert.create_time = step.now;
  insert.rerun_of = candidate.rerun_of;
  step.out->changes.push_back(std::move(insert));

  auto at = jobs_.emplace_hint(jobs_.end(), id, job);
  const auto apply = [&](contract::JobEvent event, v1::TransitionKind kind, const std::string& verb,
                         const std::string& more) {
    v1::Transition transition;
    transition.set_kind(kind);
    *transition.mutable_evidence() =
        UserEvidence({.verb = verb, .user = user, .more = more}, step.now);
    Apply(id, at->second, {event}, std::move(transition), step);
  };
  const std::string of =
      candidate.rerun_of != 0 ? fmt::format(", with the spec of job {}", candidate.rerun_of) : "";
  apply(contract::JobEvent::kSubmit, v1::TRANSITION_KIND_SUBMITTED, "submitted", of);
  if (candidate.is_held)
    apply(contract::JobEvent::kHold, v1::TRANSITION_KIND_HOLD_REQUESTED, "held", "");
  return id;
}

}  // namespace muster::core
