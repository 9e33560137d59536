#include "broker/rpc/submit_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "broker/core/fingerprint.h"
#include "broker/engine/engine.h"
#include "contract/text.h"

namespace muster::broker {
namespace {

// The most clusters that are asked about one job; the rest refuse nothing.
constexpr size_t kMaxAskedClusters = 10;

bool NeedsAsking(const v1::JobSpec& spec) {
  return spec.has_kubernetes() || spec.mounts_size() > 0 || spec.inputs_size() > 0 ||
         spec.outputs_size() > 0 || !spec.results_directory().empty();
}

// The same for jobs of which a cluster says the same: what they run hardly matters to it.
core::Fingerprint AlikeOf(const v1::JobSpec& spec) {
  v1::JobSpec part = spec;
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

}  // namespace

// One submit, and its jobs that are to be asked about.
struct SubmitQuestions::Asking {
  Context context;
  core::Submit submit;
  SubmitDone done;
  std::map<core::Fingerprint, std::vector<size_t>> alike;  // indexes of items
  std::atomic<size_t> missing = 0;                         // answers

  // The answer for those items. The last one lets the submit go on.
  void Put(const std::vector<size_t>& items, const core::Refusals& refusals) {
    for (const size_t item : items) submit.items[item].refused_by = refusals;
    if (missing.fetch_sub(1) == 1) context.engine->Submit(std::move(submit), std::move(done));
  }
};

void SubmitQuestions::Submit(const Context& context, core::Submit submit, SubmitDone done) {
  auto asking = std::make_shared<Asking>();
  for (size_t i = 0; i < submit.items.size(); ++i) {
    const v1::JobSpec& spec = *submit.items[i].spec;
    if (!NeedsAsking(spec)) continue;
    const core::Fingerprint alike = AlikeOf(spec);
    if (!IsRemembered(alike)) asking->alike[alike].push_back(i);
  }
  if (asking->alike.empty()) return context.engine->Submit(std::move(submit), std::move(done));
  asking->context = context;
  asking->submit = submit;
  asking->done = std::move(done);
  asking->missing = asking->alike.size();
  // First what needs no agent: a repeat of an accepted request is accepted whatever they say now.
  submit.validate_only = true;
  context.engine->Submit(
      std::move(submit), [this, asking](const absl::StatusOr<v1::SubmitJobsResponse>& valid) {
        if (!valid.ok()) return asking->done(valid.status());
        for (const auto& [alike, items] : asking->alike) {
          const bool are_repeats = std::all_of(items.begin(), items.end(), [&](size_t item) {
            return valid->responses(static_cast<int>(item)).repeated_request();
          });
          if (are_repeats) {
            asking->Put(items, {});
            continue;
          }
          Ask(asking->context, alike, asking->submit.items[items.front()],
              [asking, &items = items](const core::Refusals& refusals) {
                asking->Put(items, refusals);
              });
        }
      });
}

bool SubmitQuestions::IsRemembered(core::Fingerprint alike) {
  const std::lock_guard lock(mutex_);
  const auto it = remembered_.find(alike);
  return it != remembered_.end() && SteadyClock::now() < it->second;
}

void SubmitQuestions::Ask(const Context& context, core::Fingerprint alike,
                          const core::SubmitItem& item, Done done) {
  bool is_asked = false;
  {
    const std::lock_guard lock(mutex_);
    is_asked = asked_.contains(alike);
    const bool may_ask = asked_.size() < kMaxAsked && SteadyClock::now() >= silent_until_;
    if (waiting_ < kMaxWaitingSubmits && (is_asked || may_ask)) {
      asked_[alike].push_back(std::exchange(done, nullptr));
      ++waiting_;
    }
  }
  if (done != nullptr) return done({});
  if (is_asked) return;
  core::ListClusters which;
  which.that_could_take = item.spec;
  // What stands against a job where nobody's jobs are taken may pass, as that does.
  which.at_once = true;
  v1::PlanQuestion question;
  // Without a user: what the agent knows by itself is enough, each try costs the cluster writes.
  *question.mutable_spec() = *item.spec;
  context.engine->ListClusters(
      std::move(which),
      [this, context, alike, question](const absl::StatusOr<core::ClustersReply>& reply) {
        std::vector<v1::Cluster> clusters;
        if (reply.ok()) {
          for (const v1::Cluster& cluster : reply->clusters) {
            if (cluster.kind() == v1::CLUSTER_KIND_KUBERNETES &&
                clusters.size() < kMaxAskedClusters)
              clusters.push_back(cluster);
          }
        }
        AskPlans(context, clusters, question, kSubmitPatience, absl::InfiniteFuture(),
                 [this, alike](const JobPlans& plans) { End(alike, plans); });
      });
}

void SubmitQuestions::End(core::Fingerprint alike, const JobPlans& plans) {
  const core::Refusals refusals = RefusalsOf(plans);
  const bool is_silent = std::any_of(plans.begin(), plans.end(), [](const auto& plan) {
    return absl::IsDeadlineExceeded(plan.status());
  });
  std::vector<Done> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting = std::move(asked_[alike]);
    asked_.erase(alike);
    waiting_ -= waiting.size();
    const auto now = SteadyClock::now();
    if (is_silent) silent_until_ = now + absl::ToChronoMilliseconds(kRestAfterSilence);
    // A refusal is not remembered: whoever corrects the cluster wants to be believed.
    if (refusals.empty() && !plans.empty()) {
      if (remembered_.size() >= kMaxRememberedAnswers)
        std::erase_if(remembered_, [now](const auto& entry) { return entry.second <= now; });
      if (remembered_.size() < kMaxRememberedAnswers)
        remembered_[alike] = now + absl::ToChronoMilliseconds(kAnswerAge);
    }
  }
  for (const Done& done : waiting) done(refusals);
}

}  // namespace muster::broker
