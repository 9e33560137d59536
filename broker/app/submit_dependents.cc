#include "broker/app/submit_dependents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "broker/app/rights.h"
#include "broker/app/submit_files.h"
#include "broker/store/store.h"
#include "contract/errors.h"
#include "contract/parts.h"
#include "contract/states.h"
#include "contract/text.h"

namespace muster::broker {
namespace {

// Each try finds at least one more of the jobs ended, and jobs end seldom while a submit is on its
// way.
constexpr int kMaxTries = 20;

bool Depends(const core::SubmitItem& item) { return item.spec->depends_on_size() > 0; }

// Returns the job whose end the core has asked for; nothing if the answer is another one.
std::optional<uint64_t> AskedFor(const absl::Status& status) {
  const auto info = contract::GetErrorInfo(status);
  if (!info || info->reason() != "DEPENDENCY_ENDED") return std::nullopt;
  const auto job = info->metadata().find("job_id");
  if (job == info->metadata().end()) return std::nullopt;
  return contract::ParseNumber<uint64_t>(job->second);
}

class DependentSubmit : public std::enable_shared_from_this<DependentSubmit> {
 public:
  DependentSubmit(const Principal& principal, store::Scope scope, const Services& services,
                  core::Submit submit, SubmitDone done)
      : principal_(principal),
        scope_(std::move(scope)),
        services_(services),
        submit_(std::move(submit)),
        done_(std::move(done)) {}

  void Begin() {
    const bool is_taken =
        services_.readers->PostCall([self = shared_from_this()] { self->Look(); });
    if (!is_taken) done_(services_.readers->Refusal());
  }

 private:
  // Runs on a thread that may read the store.
  void Look() {
    absl::flat_hash_map<uint64_t, absl::StatusOr<v1::JobState>> seen;
    for (size_t i = 0; i < submit_.items.size(); ++i) {
      core::SubmitItem& item = submit_.items[i];
      const std::string prefix =
          submit_.items.size() > 1 ? fmt::format("requests[{}].spec.", i) : "spec.";
      item.dependencies = LookAt(*item.spec, prefix, &seen);
      if (seen.size() > kMaxDependenciesPerSubmit) return done_(TooMany());
    }
    for (const auto& [job, state] : seen) {
      if (state.ok() && contract::IsTerminal(*state)) submit_.ends[job] = *state;
    }
    SubmitWithFiles(principal_, services_, submit_,
                    [self = shared_from_this()](absl::StatusOr<v1::SubmitJobsResponse> result) {
                      self->Answer(std::move(result));
                    });
  }

  absl::Status LookAt(const v1::JobSpec& spec, const std::string& prefix,
                      absl::flat_hash_map<uint64_t, absl::StatusOr<v1::JobState>>* seen) const {
    for (int i = 0; i < spec.depends_on_size(); ++i) {
      const uint64_t job = spec.depends_on(i).job_id();
      if (job == 0) continue;
      auto known = seen->find(job);
      if (known == seen->end()) known = seen->emplace(job, StateOf(job)).first;
      if (known->second.ok()) continue;
      return contract::InOtherWords(known->second.status(),
                                    fmt::format("{}depends_on[{}].job_id: {}", prefix, i,
                                                ToStd(known->second.status().message())));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<v1::JobState> StateOf(uint64_t job) const {
    const auto jobs = services_.store->GetJobs(scope_, {job});
    if (!jobs.ok()) return jobs.status();
    return jobs->front().state();
  }

  static absl::Status TooMany() {
    return contract::BadField(
        "requests", fmt::format("name more than {} different jobs in their depends_on; submit them "
                                "in several calls",
                                kMaxDependenciesPerSubmit));
  }

  void Answer(absl::StatusOr<v1::SubmitJobsResponse> result) {
    const std::optional<uint64_t> ended = AskedFor(result.status());
    if (!ended || ++tries_ == kMaxTries) return done_(std::move(result));
    asked_for_ = *ended;
    const bool is_taken = services_.readers->PostCall([self = shared_from_this()] {
      self->LookForOne();
      self->Look();
    });
    if (!is_taken) done_(services_.readers->Refusal());
  }

  // An earlier request of this call may also have made the job, which no item names.
  void LookForOne() {
    const auto states = services_.store->GetStates({asked_for_});
    if (states.ok() && contract::IsTerminal(states->front()))
      submit_.ends[asked_for_] = states->front();
  }

  const Principal principal_;
  const store::Scope scope_;
  const Services services_;
  core::Submit submit_;
  const SubmitDone done_;
  uint64_t asked_for_ = 0;
  int tries_ = 0;
};

}  // namespace

void SubmitWithDependencies(const Principal& principal, const Services& services,
                            core::Submit submit, SubmitDone done) {
  if (std::none_of(submit.items.begin(), submit.items.end(), Depends))
    return SubmitWithFiles(principal, services, std::move(submit), std::move(done));
  absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kReadJobs);
  if (!scope.ok()) return done(scope.status());
  std::make_shared<DependentSubmit>(principal, *std::move(scope), services, std::move(submit),
                                    std::move(done))
      ->Begin();
}

}  // namespace muster::broker
