#include <algorithm>
#include <optional>
#include <utility>

#include "broker/core/event_bounds.h"
#include "broker/core/impl.h"
#include "broker/core/rerun_id.h"
#include "broker/core/submit_batch.h"
#include "contract/refusals.h"
#include "contract/sentences.h"
#include "contract/slurm_only.h"
#include "contract/slurm_options.h"
#include "contract/task_array.h"

namespace muster::core {

void Core::Impl::On(Submit& in, Step& step) {
  if (auto repeat = AnswerRepeat(in)) {
    step.out->effects.push_back(*std::move(repeat));
    return;
  }
  Batch batch{.user = in.user};
  std::vector<Candidate>& candidates = batch.candidates;
  candidates.reserve(in.items.size());
  std::optional<contract::Refusal> refusal;
  for (const SubmitItem& item : in.items) {
    refusal = Examine(item, batch);
    if (!refusal) continue;
    if (in.items.size() > 1) refusal->request = candidates.size();
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
  if (!refusal && !in.validate_only) refusal = CheckFiles(in.items, candidates);
  if (!refusal && !in.validate_only) refusal = CheckEnds(in, candidates);
  if (!refusal) refusal = CheckRoom(candidates);
  if (!refusal) refusal = CheckQueueQuotas(in, candidates);
  LeaveSplitArrays(&candidates);
  if (refusal) {
    step.out->effects.push_back(SubmitReply{in.ticket, *std::move(refusal)});
    return;
  }
  v1::SubmitJobsResponse response;
  response.mutable_responses()->Reserve(static_cast<int>(candidates.size()));
  for (Candidate& candidate : candidates) {
    v1::SubmitJobResponse* reply = response.add_responses();
    reply->set_repeated_request(!candidate.is_new());
    if (in.validate_only) continue;
    if (candidate.same_as) candidate.job = candidates[*candidate.same_as].job;
    if (candidate.job == 0) {
      NameDependencies(candidates, &candidate);
      candidate.job = Accept(candidate, in, step);
    }
    reply->set_job_id(candidate.job);
  }
  step.out->effects.push_back(SubmitReply{in.ticket, std::move(response)});
}

std::optional<SubmitReply> Core::Impl::AnswerRepeat(const Submit& in) const {
  if (!in.rerun) return std::nullopt;
  const std::string id = RerunId(in.rerun->request_id, /*is_first=*/true);
  const RequestMemory::Entry* entry = requests_.Find(RequestKeyOf("", id));
  if (entry == nullptr) return std::nullopt;
  if (entry->spec != in.rerun->fingerprint) {
    return SubmitReply{in.ticket, contract::Refusal{contract::refused::RerunIdReused{
                                      in.rerun->request_id, entry->job}}};
  }
  v1::SubmitJobsResponse response;
  for (size_t i = 0; i < std::max<size_t>(in.items.size(), 1); ++i) {
    v1::SubmitJobResponse* reply = response.add_responses();
    reply->set_repeated_request(true);
    reply->set_job_id(entry->job);
  }
  return SubmitReply{in.ticket, std::move(response)};
}

std::optional<contract::Refusal> Core::Impl::Examine(const SubmitItem& item, Batch& batch) {
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
      return contract::Refusal{
          contract::refused::RequestIdReused{item.request_id, item.spec->project(), candidate.job}};
    }
  }
  if (candidate.is_new()) {
    if (!item.dependencies.ok()) return contract::Refusal{item.dependencies};
    candidate.is_held = item.held || contract::IsHeldFromTheStart(*item.spec);
    candidate.requirements = RequirementsOf(*item.spec, item.archive_bytes);
    const std::optional<UserIndex> user = accounts_.FindUser(batch.user);
    Group* alike = user ? groups_.Find(candidate.requirements, *user) : nullptr;
    int64_t unbounded = 0;
    if (alike != nullptr) Refit(alike, &unbounded);
    if (alike == nullptr || alike->lane()->fits.empty()) {
      if (auto refusal = CheckNamedClusters(*item.spec)) return refusal;
      if (auto refusal = CheckPlaceable(*item.spec, candidate.requirements)) return refusal;
    }
    if (auto refusal = CheckBeyondQuota(candidate.requirements, batch.user)) return refusal;
  }
  batch.candidates.push_back(std::move(candidate));
  return std::nullopt;
}

std::optional<contract::Refusal> Core::Impl::CheckNamedClusters(const v1::JobSpec& spec) const {
  for (const std::string& name : spec.placement().clusters()) {
    if (FindCluster(name) != nullptr) continue;
    return contract::Refusal{contract::refused::UnknownCluster{name, KnownClusters()}};
  }
  return std::nullopt;
}

std::optional<contract::Refusal> Core::Impl::CheckPlaceable(
    const v1::JobSpec& spec, const Requirements& requirements) const {
  if (clusters_by_name_.empty()) return std::nullopt;
  for (const auto& [name, cluster] : clusters_by_name_) {
    if (CheckFit(requirements, cluster->saved, *limits_).ever()) return std::nullopt;
  }
  return contract::Refusal{
      contract::refused::NeverPlaced{.lacks = contract::NotPlaced(LacksOf(requirements)),
                                     .why_slurm = contract::WhySlurmOnly(spec),
                                     .has_named_clusters = spec.placement().clusters_size() > 0}};
}

std::optional<contract::Refusal> Core::Impl::CheckFiles(const std::vector<SubmitItem>& items,
                                                        const std::vector<Candidate>& candidates) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].is_new() && !items[i].files.ok()) return contract::Refusal{items[i].files};
  }
  return std::nullopt;
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

std::optional<contract::Refusal> Core::Impl::CheckRoom(
    const std::vector<Candidate>& candidates) const {
  uint64_t jobs = 0, requests = 0;
  for (const Candidate& candidate : candidates) {
    if (!candidate.is_new()) continue;
    ++jobs;
    if (candidate.is_remembered) ++requests;
  }
  if (jobs > 0 && queued_ + jobs > options_.max_queued_jobs) {
    return contract::Refusal{contract::refused::QueueFull{queued_, options_.max_queued_jobs}};
  }
  if (requests > 0 && requests_.size() + requests > options_.max_remembered_requests) {
    return contract::Refusal{
        contract::refused::RequestMemoryFull{requests_.size(), options_.max_remembered_requests}};
  }
  return std::nullopt;
}

std::optional<contract::Refusal> Core::Impl::CheckEnds(
    const Submit& in, const std::vector<Candidate>& candidates) const {
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].is_new()) continue;
    for (const v1::JobDependency& one : candidates[i].spec->depends_on()) {
      const uint64_t job = one.request() == 0 ? one.job_id() : candidates[one.request() - 1].job;
      if (job == 0 || jobs_.contains(job) || in.ends.contains(job)) continue;
      contract::Refusal refusal{contract::refused::DependencyEnded{job}};
      if (candidates.size() > 1) refusal.request = i;
      return refusal;
    }
  }
  return std::nullopt;
}

void Core::Impl::NameDependencies(const std::vector<Candidate>& candidates, Candidate* candidate) {
  const auto& all = candidate->spec->depends_on();
  if (std::none_of(all.begin(), all.end(), [](const auto& one) { return one.request() != 0; }))
    return;
  v1::JobSpec spec = *candidate->spec;
  for (v1::JobDependency& one : *spec.mutable_depends_on()) {
    if (one.request() != 0) one.set_job_id(candidates[one.request() - 1].job);
    one.clear_request();
  }
  candidate->spec = std::make_shared<const v1::JobSpec>(std::move(spec));
}

uint64_t Core::Impl::Accept(Candidate& candidate, const Submit& in, Step& step) {
  const std::string& user = in.user;
  Group* group = GroupFor(std::move(candidate.requirements), user);
  ++group->jobs;
  const uint64_t id = next_job_id_++;
  Job job;
  job.group = group->id;
  job.priority = static_cast<int16_t>(candidate.spec->priority());
  if (candidate.is_remembered) {
    job.request = requests_.Add({candidate.key, candidate.fingerprint, id});
  }
  InsertJob insert;
  Await(id, *candidate.spec, in.ends);
  insert.id = id;
  insert.spec = std::move(candidate.spec);
  insert.request_id = std::move(candidate.request_id);
  insert.fingerprint = candidate.fingerprint;
  insert.user = user;
  insert.create_time = step.now;
  submit_times_.Add(id, step.now);
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
  const std::string of = candidate.rerun_of != 0 ? contract::WithSpecOf(candidate.rerun_of) : "";
  apply(contract::JobEvent::kSubmit, v1::TRANSITION_KIND_SUBMITTED, "submitted", of);
  if (candidate.is_held)
    apply(contract::JobEvent::kHold, v1::TRANSITION_KIND_HOLD_REQUESTED, "held", "");
  return id;
}

}  // namespace muster::core
