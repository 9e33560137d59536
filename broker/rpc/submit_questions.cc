#include "broker/rpc/submit_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "broker/core/event_bounds.h"
#include "broker/core/fingerprint.h"
#include "broker/core/gpu_names.h"
#include "broker/engine/engine.h"
#include "contract/sentences.h"

namespace muster::broker {
namespace {

// The most clusters that are asked about one job; the rest refuse nothing.
constexpr size_t kMaxAskedClusters = 10;

// Which nodes have it, inventories do not say of GPUs that have a type.
bool IsResource(const v1::GpuRequest& gpus) { return core::NamesGpuResource(gpus.type()); }

bool NeedsAsking(const v1::JobSpec& spec) {
  const auto& gpus = spec.resources().gpus();
  return std::any_of(gpus.begin(), gpus.end(), IsResource) || spec.has_kubernetes() ||
         spec.mounts_size() > 0 || spec.uploads_size() > 0 || spec.inputs_size() > 0 ||
         !spec.results_directory().empty() || !spec.working_directory().empty();
}

// Before a client uploads anything it may ask in vain: agents say of files that they cannot see yet
// what they say of a job without files.
bool MayLackFiles(const v1::JobSpec& spec, bool is_trial) {
  return is_trial && spec.uploads_size() > 0;
}

// The same for jobs against which most likely the same speaks, or nothing.
core::Fingerprint AlikeOf(const v1::JobSpec& spec, bool is_trial) {
  v1::JobSpec part = spec;
  if (MayLackFiles(spec, is_trial)) part.clear_uploads();
  part.clear_name();
  part.clear_setup();
  part.clear_command();
  part.clear_env();
  part.clear_labels();
  part.clear_priority();
  part.clear_project();
  return core::FingerprintOf(part);
}

// What speaks against the job; empty: nothing does.
std::string RefusalOf(const v1::JobPlan& plan) {
  for (const v1::ClusterCheck& check : plan.checks()) {
    if (check.result() == v1::CHECK_RESULT_FAIL) return check.seen();
  }
  return "";
}

core::Refusals RefusalsOf(const JobPlans& plans) {
  core::Refusals refusals;
  for (const absl::StatusOr<v1::JobPlan>& plan : plans) {
    if (!plan.ok()) continue;
    if (std::string words = RefusalOf(*plan); !words.empty())
      refusals.emplace(plan->cluster(), std::move(words));
  }
  return refusals;
}

std::vector<v1::SubmitWarning> WarningsOfAll(const JobPlans& plans) {
  std::vector<v1::SubmitWarning> warnings;
  for (const absl::StatusOr<v1::JobPlan>& plan : plans) {
    if (!plan.ok() || !RefusalOf(*plan).empty()) continue;
    for (v1::SubmitWarning& warning : WarningsOf(*plan)) {
      if (warnings.size() < kMaxWarnings) warnings.push_back(std::move(warning));
    }
  }
  return warnings;
}

// By the index of the item.
using WarningsByItem = std::map<size_t, std::vector<v1::SubmitWarning>>;

void AddWarnings(const WarningsByItem& warnings, v1::SubmitJobsResponse* response) {
  size_t bytes = 0;
  for (const auto& [index, of_item] : warnings) {
    for (const v1::SubmitWarning& warning : of_item) {
      bytes += warning.ByteSizeLong();
      if (bytes > kMaxWarningsBytes) return;
      *response->mutable_responses(static_cast<int>(index))->add_warnings() = warning;
    }
  }
}

}  // namespace

std::vector<v1::SubmitWarning> WarningsOf(const v1::JobPlan& plan) {
  std::vector<v1::SubmitWarning> warnings(plan.warnings().begin(), plan.warnings().end());
  if (warnings.empty()) {
    for (const v1::ClusterCheck& check : plan.checks()) {
      if (check.result() == v1::CHECK_RESULT_WARN)
        warnings.push_back(contract::MakeWarning(v1::SUBMIT_WARNING_CODE_CHECK, check));
    }
  }
  if (warnings.size() > kMaxWarnings) warnings.resize(kMaxWarnings);
  for (v1::SubmitWarning& warning : warnings) {
    contract::SetCluster(plan.cluster(), &warning);
    for (std::string* text :
         {warning.mutable_message(), warning.mutable_remedy(), warning.mutable_subject()}) {
      core::Truncate(core::kMaxIssueBytes, text);
    }
  }
  return warnings;
}

// One submit, and its jobs that are to be asked about.
struct SubmitQuestions::Asking {
  Context context;
  core::Submit submit;
  SubmitDone done;
  WarningsByItem warnings;        // guarded by mutex_
  size_t bytes = 0;               // of its specs
  SteadyClock::time_point until;  // no question begins later
  std::map<core::Fingerprint, std::vector<Job>> alike;
  std::atomic<size_t> missing = 0;  // of `alike`
};

void SubmitQuestions::Submit(const Context& context, core::Submit submit, SubmitDone done) {
  auto asking = std::make_shared<Asking>();
  for (size_t i = 0; i < submit.items.size(); ++i) {
    const v1::JobSpec& spec = *submit.items[i].spec;
    asking->bytes += spec.ByteSizeLong();
    if (!NeedsAsking(spec)) continue;
    const bool is_trial = submit.validate_only;
    const core::Fingerprint alike = AlikeOf(spec, is_trial);
    if (MayLackFiles(spec, is_trial) || !IsRemembered(alike))
      asking->alike[alike].push_back({i, core::FingerprintOf(spec)});
  }
  if (asking->alike.empty() || !Enter(asking->bytes)) {
    return context.engine->Submit(std::move(submit), std::move(done));
  }
  asking->context = context;
  asking->submit = submit;
  asking->done = std::move(done);
  asking->until = SteadyClock::now() + absl::ToChronoMilliseconds(bounds_.patience);
  asking->missing = asking->alike.size();
  // First what needs no agent: a repeat of an accepted request is accepted whatever they say now.
  submit.validate_only = true;
  context.engine->Submit(std::move(submit),
                         [this, asking](const absl::StatusOr<v1::SubmitJobsResponse>& valid) {
                           if (!valid.ok()) {
                             Leave(asking->bytes);
                             return asking->done(valid.status());
                           }
                           for (auto& [alike, jobs] : asking->alike) {
                             std::erase_if(jobs, [&](const Job& job) {
                               const auto& response = valid->responses(static_cast<int>(job.index));
                               return response.repeated_request();
                             });
                             AskAbout(asking, alike, std::move(jobs));
                           }
                         });
}

bool SubmitQuestions::IsRemembered(core::Fingerprint alike) {
  const std::lock_guard lock(mutex_);
  const auto it = remembered_.find(alike);
  return it != remembered_.end() && SteadyClock::now() < it->second;
}

bool SubmitQuestions::Enter(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (waiting_ >= bounds_.max_waiting || waiting_bytes_ + bytes > bounds_.max_waiting_bytes)
    return false;
  ++waiting_;
  waiting_bytes_ += bytes;
  return true;
}

void SubmitQuestions::Leave(size_t bytes) {
  const std::lock_guard lock(mutex_);
  --waiting_;
  waiting_bytes_ -= bytes;
}

void SubmitQuestions::AskAbout(const AskingPtr& asking, core::Fingerprint alike,
                               std::vector<Job> jobs) {
  if (jobs.empty() || SteadyClock::now() >= asking->until) return EndOfAlike(asking);
  const Job first = jobs.front();
  Ask(asking->context, alike, first.fingerprint, asking->submit.items[first.index].spec,
      [this, asking, alike, jobs = std::move(jobs)](const Answer& answer) {
        Settle(asking, alike, jobs, answer);
      });
}

void SubmitQuestions::Settle(const AskingPtr& asking, core::Fingerprint alike,
                             const std::vector<Job>& jobs, const Answer& answer) {
  {
    const std::lock_guard lock(mutex_);
    for (const Job& job : jobs) {
      const bool is_meant = answer.refusals.empty() || job.fingerprint == answer.asked;
      if (is_meant && !answer.warnings.empty()) asking->warnings[job.index] = answer.warnings;
    }
  }
  if (answer.refusals.empty()) return EndOfAlike(asking);
  std::vector<Job> others;
  core::Submit refused;
  for (const Job& job : jobs) {
    core::SubmitItem& item = asking->submit.items[job.index];
    if (job.fingerprint != answer.asked) {
      others.push_back(job);
      continue;
    }
    item.refused_by = answer.refusals;
    if (refused.items.empty()) refused.items.push_back(item);
  }
  // The answer was about a job of another submit.
  if (refused.items.empty()) return AskAbout(asking, alike, std::move(others));
  if (others.empty()) return EndOfAlike(asking);
  // All or none: if nobody else can take this one, the others need not be asked about.
  refused.user = asking->submit.user;
  refused.validate_only = true;
  asking->context.engine->Submit(
      std::move(refused),
      [this, asking, alike, others](const absl::StatusOr<v1::SubmitJobsResponse>& valid) {
        AskAbout(asking, alike, valid.ok() ? others : std::vector<Job>());
      });
}

void SubmitQuestions::EndOfAlike(const AskingPtr& asking) {
  if (asking->missing.fetch_sub(1) > 1) return;
  Leave(asking->bytes);
  asking->context.engine->Submit(std::move(asking->submit), [asking](auto result) {
    // All have answered, so that nobody else has it now.
    if (result.ok()) AddWarnings(asking->warnings, &*result);
    asking->done(std::move(result));
  });
}

void SubmitQuestions::Ask(const Context& context, core::Fingerprint alike,
                          core::Fingerprint fingerprint,
                          const std::shared_ptr<const v1::JobSpec>& spec, Done done) {
  bool is_asked = false;
  {
    const std::lock_guard lock(mutex_);
    is_asked = asked_.contains(alike);
    const bool may_ask = asked_.size() < bounds_.max_asked && SteadyClock::now() >= silent_until_;
    if (is_asked || may_ask) asked_[alike].push_back(std::exchange(done, nullptr));
  }
  if (done != nullptr) return done({});
  if (is_asked) return;
  core::ListClusters which;
  which.that_could_take = spec;
  // What stands against a job where nobody's jobs are taken may pass, as that does.
  which.at_once = true;
  // Without a user: what the agent knows by itself is enough, each try costs the cluster writes.
  agent::v1::PlanQuestion question;
  *question.mutable_spec() = *spec;
  context.engine->ListClusters(
      std::move(which), [this, context, alike, fingerprint,
                         question](const absl::StatusOr<core::ClustersReply>& reply) {
        std::vector<v1::Cluster> clusters;
        if (reply.ok()) {
          for (const v1::Cluster& cluster : reply->clusters) {
            if (cluster.kind() == v1::CLUSTER_KIND_KUBERNETES &&
                clusters.size() < kMaxAskedClusters)
              clusters.push_back(cluster);
          }
        }
        AskPlans(
            context, clusters, question, bounds_.patience, absl::InfiniteFuture(),
            [this, alike, fingerprint](const JobPlans& plans) { End(alike, fingerprint, plans); });
      });
}

void SubmitQuestions::End(core::Fingerprint alike, core::Fingerprint asked, const JobPlans& plans) {
  const Answer answer{RefusalsOf(plans), WarningsOfAll(plans), asked};
  const bool is_silent = std::any_of(plans.begin(), plans.end(), [](const auto& plan) {
    return absl::IsDeadlineExceeded(plan.status());
  });
  std::vector<Done> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting = std::move(asked_[alike]);
    asked_.erase(alike);
    const auto now = SteadyClock::now();
    if (is_silent) silent_until_ = now + absl::ToChronoMilliseconds(bounds_.rest_after_silence);
    // A refusal or a warning is not remembered: whoever corrects the cluster wants to be believed.
    if (answer.refusals.empty() && answer.warnings.empty() && !plans.empty()) {
      if (remembered_.size() >= bounds_.max_remembered)
        std::erase_if(remembered_, [now](const auto& entry) { return entry.second <= now; });
      if (remembered_.size() < bounds_.max_remembered)
        remembered_[alike] = now + absl::ToChronoMilliseconds(bounds_.answer_age);
    }
  }
  for (const Done& done : waiting) done(answer);
}

}  // namespace muster::broker
