#include "broker/rpc/submit_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "broker/engine/engine.h"
#include "broker/files/job_files.h"
#include "broker/rpc/unary.h"
#include "contract/sentences.h"

namespace muster::broker {
namespace {

// Different trees of one submit: as many as one job may name. Each may take 0.2 s to look at.
constexpr size_t kMaxTreesPerSubmit = 64;

bool BringsFiles(const core::SubmitItem& item) { return item.spec->uploads_size() > 0; }

absl::Status CheckTreeCount(const core::Submit& submit) {
  absl::flat_hash_set<std::string> trees;
  for (const core::SubmitItem& item : submit.items) {
    for (const v1::Upload& upload : item.spec->uploads()) trees.insert(upload.tree_sha256());
  }
  if (trees.size() <= kMaxTreesPerSubmit) return absl::OkStatus();
  return contract::BadField(
      "requests", fmt::format("name {} different trees in their uploads; one call takes at most "
                              "{}, submit the jobs in several calls",
                              trees.size(), kMaxTreesPerSubmit));
}

// A submit whose files are looked at.
struct Checking {
  Context context;
  core::Submit submit;
  SubmitDone done;
  std::vector<size_t> items;  // those that are no repeats and bring files

  absl::Status Check() const {
    for (const size_t i : items) {
      const std::string prefix =
          submit.items.size() > 1 ? fmt::format("requests[{}].spec.", i) : "spec.";
      absl::Status status = context.job_files->Check(*submit.items[i].spec, prefix);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // On the file workers.
  void Run() {
    if (absl::Status status = Check(); !status.ok()) return done(status);
    context.submit_questions->Submit(context, std::move(submit), std::move(done));
  }
};

bool NamesPlace(const core::SubmitItem& item) {
  const v1::JobSpec& spec = *item.spec;
  return !spec.placement().clusters().empty() || !spec.placement().pool().empty() ||
         !spec.kubernetes().namespace_().empty() || !spec.slurm().partition().empty();
}

bool IsShut(const v1::StateReason& reason) {
  return reason.code() == v1::STATE_REASON_CODE_POOL_UNAVAILABLE ||
         reason.code() == v1::STATE_REASON_CODE_AGENT_DISCONNECTED;
}

// Of a job that names a pool or clusters, the first of the submit, also warns if the pool takes no
// jobs now, or no such cluster has an agent that is connected.
SubmitDone WarningOfPlace(const Context& context, const core::Submit& submit, SubmitDone done) {
  const auto named = std::find_if(submit.items.begin(), submit.items.end(), NamesPlace);
  if (submit.validate_only || named == submit.items.end()) return done;
  const int index = static_cast<int>(named - submit.items.begin());
  return [context, index, done = std::move(done)](absl::StatusOr<v1::SubmitJobsResponse> result) {
    if (!result.ok()) return done(std::move(result));
    const uint64_t job = result->responses(index).job_id();
    context.engine->Explain({job}, [=](const std::vector<v1::StateReason>& reasons) {
      absl::StatusOr<v1::SubmitJobsResponse> warned = result;
      v1::SubmitJobResponse& response = *warned->mutable_responses(index);
      if (!reasons.empty() && IsShut(reasons[0]) && response.warnings_size() < kMaxWarnings)
        *response.add_warnings() = contract::WaitsForPlace(job, reasons[0]);
      done(std::move(warned));
    });
  };
}

}  // namespace

void SubmitWithFiles(const Context& context, core::Submit submit, SubmitDone done) {
  done = WarningOfPlace(context, submit, std::move(done));
  if (submit.validate_only || std::none_of(submit.items.begin(), submit.items.end(), BringsFiles)) {
    return context.submit_questions->Submit(context, std::move(submit), std::move(done));
  }
  if (absl::Status status = CheckTreeCount(submit); !status.ok()) return done(status);
  core::Submit trial = submit;
  trial.validate_only = true;
  auto checking =
      std::make_shared<Checking>(Checking{context, std::move(submit), std::move(done), {}});
  context.engine->Submit(
      std::move(trial), [checking](const absl::StatusOr<v1::SubmitJobsResponse>& valid) {
        if (!valid.ok()) return checking->done(valid.status());
        for (size_t i = 0; i < checking->submit.items.size(); ++i) {
          const bool is_repeat = valid->responses(static_cast<int>(i)).repeated_request();
          if (!is_repeat && BringsFiles(checking->submit.items[i])) checking->items.push_back(i);
        }
        if (!checking->context.file_workers->PostCall([checking] { checking->Run(); }))
          checking->done(ReadersBusy());
      });
}

}  // namespace muster::broker
