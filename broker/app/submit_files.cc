#include "broker/app/submit_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/clock.h"
#include "broker/app/file_viewer.h"
#include "broker/app/project_limits.h"
#include "broker/app/readers.h"
#include "broker/app/run_secrets.h"
#include "broker/app/submit_warnings.h"
#include "broker/core/cluster_view.h"
#include "broker/core/requirements.h"
#include "broker/engine/engine.h"
#include "broker/files/job_files.h"
#include "contract/errors.h"
#include "contract/sentences.h"
#include "contract/shell_environment.h"
#include "contract/slurm_options.h"
#include "contract/text.h"
#include "daemon/log.h"

namespace muster::broker {
namespace {

bool BringsFiles(const core::SubmitItem& item) {
  return item.spec->uploads_size() > 0 || contract::HasShellEnvironment(*item.spec);
}

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

// Returns the same text for items of which the same is to be looked at.
std::string FilesOf(const core::SubmitItem& item) {
  const v1::JobSpec& spec = *item.spec;
  std::string trees = fmt::format("{} {} ", spec.project(), item.rerun_of != 0);
  trees += spec.slurm().batch_script().environment().file_sha256() + " ";
  for (const v1::Upload& upload : spec.uploads()) trees += upload.tree_sha256() + " ";
  return trees;
}

// The size of the files is known, if it counts.
void ToEngine(const Services& services, core::Submit submit, SubmitDone done) {
  done = WarningOfFacts(services, submit, std::move(done));
  services.engine->Submit(std::move(submit), std::move(done));
}

// The files of a job, which become its project's.
struct SharedFiles {
  std::shared_ptr<const v1::JobSpec> spec;
  std::string prefix;  // of the spec's fields
};

// The jobs are accepted. Files that have gone since are asked for once more: the repeat of the
// submit then shares them. Any other failure costs the members another upload, and no job.
absl::Status ShareAll(const Services& services, const std::vector<SharedFiles>& all) {
  for (const SharedFiles& one : all) {
    absl::Status status = services.job_files->Share(*one.spec, one.prefix);
    if (absl::IsFailedPrecondition(status)) return status;
    if (!status.ok()) {
      LogEvent(spdlog::level::warn, "files_not_shared",
               {{"project", one.spec->project()}, {"error", std::string(ToStd(status.message()))}});
    }
  }
  return absl::OkStatus();
}

// Shares the files when the jobs are accepted, before the answer: those of a refused submit stay
// the submitter's. Returns null if too many calls wait for the file workers.
SubmitDone Sharing(const Services& services, std::vector<SharedFiles> all, SubmitDone done) {
  auto place = AnswerPlace::Take(services.file_workers);
  if (!place) return nullptr;
  return [services, place = std::move(place), all = std::move(all),
          done = std::move(done)](absl::StatusOr<v1::SubmitJobsResponse> result) {
    if (!result.ok()) {
      place->GiveBack();
      return done(std::move(result));
    }
    place->Use([services, all, done, result = *std::move(result)](bool may_read) {
      const absl::Status shared = may_read ? ShareAll(services, all) : absl::OkStatus();
      if (!shared.ok()) return done(shared);
      done(result);
    });
  };
}

// A submit whose files are being looked at.
struct Looking {
  Services services;
  files::Viewer viewer;
  core::Submit submit;
  SubmitDone done;

  // Runs on the file workers. Items with the same files are looked at once: job_files does not
  // remember trees that are not complete.
  void Run() {
    std::map<std::string, const core::SubmitItem*> seen;  // by their files
    std::vector<SharedFiles> shared;
    for (size_t i = 0; i < submit.items.size(); ++i) {
      core::SubmitItem& item = submit.items[i];
      if (!BringsFiles(item)) continue;
      const auto [known, is_new] = seen.emplace(FilesOf(item), &item);
      if (is_new) {
        const std::string prefix =
            submit.items.size() > 1 ? fmt::format("requests[{}].spec.", i) : "spec.";
        LookAt(&item, prefix);
        if (item.files.ok()) shared.push_back({item.spec, prefix});
      } else {
        item.files = known->second->files;
        item.archive_bytes = known->second->archive_bytes;
      }
    }
    if (!submit.validate_only && !shared.empty()) {
      SubmitDone sharing = Sharing(services, std::move(shared), done);
      if (sharing == nullptr) return done(services.file_workers->Refusal());
      done = std::move(sharing);
    }
    ToEngine(services, std::move(submit), std::move(done));
  }

  // The spec of a rerun comes from a job whose files were the submitter's.
  void LookAt(core::SubmitItem* item, const std::string& prefix) const {
    const files::Viewer of_item = item->rerun_of != 0 ? files::Viewer::All(submit.user) : viewer;
    item->files = services.job_files->Check(*item->spec, prefix, of_item);
    item->archive_bytes = services.job_files->ArchiveBytes(*item->spec, of_item);
  }
};

bool NamesPlace(const core::SubmitItem& item) {
  const v1::JobSpec& spec = *item.spec;
  return !spec.placement().clusters().empty() || !spec.placement().pool().empty() ||
         !spec.kubernetes().namespace_().empty() || !spec.slurm().partition().empty();
}

bool IsShut(const v1::StateReason& reason) {
  return reason.code() == v1::STATE_REASON_CODE_POOL_UNAVAILABLE ||
         reason.code() == v1::STATE_REASON_CODE_AGENT_DISCONNECTED ||
         reason.code() == v1::STATE_REASON_CODE_CLUSTER_CORDONED;
}

// Adds a warning if the submit's first job that names a pool or clusters cannot go there now: the
// pool takes no jobs, none of the clusters' agents is connected, or they are cordoned.
SubmitDone WarningOfPlace(const Services& services, const core::Submit& submit, SubmitDone done) {
  const auto named = std::find_if(submit.items.begin(), submit.items.end(), NamesPlace);
  if (submit.validate_only || named == submit.items.end()) return done;
  if (named->held || contract::IsHeldFromTheStart(*named->spec)) return done;
  const int index = static_cast<int>(named - submit.items.begin());
  return
      [engine = services.engine, limits = ProjectsOf(services)->places(), index, spec = named->spec,
       done = std::move(done)](absl::StatusOr<v1::SubmitJobsResponse> result) {
        if (!result.ok()) return done(std::move(result));
        const v1::StateReason reason =
            core::WhyQueued(core::RequirementsOf(*spec), {.priority = spec->priority()},
                            *engine->clusters(), *limits, absl::Now());
        v1::SubmitJobResponse& response = *result->mutable_responses(index);
        if (IsShut(reason) && response.warnings_size() < kMaxWarnings)
          *response.add_warnings() = contract::WaitsForPlace(response.job_id(), reason);
        done(std::move(result));
      };
}

}  // namespace

void SubmitWithFiles(const Principal& principal, const Services& services, core::Submit submit,
                     SubmitDone done) {
  done = WarningOfPlace(services, submit, NotingSecrets(services, submit, std::move(done)));
  if (std::none_of(submit.items.begin(), submit.items.end(), BringsFiles))
    return ToEngine(services, std::move(submit), std::move(done));
  if (absl::Status status = CheckTreeCount(submit); !status.ok()) return done(status);
  auto viewer = FileViewer(principal, UseCase::kBringFiles);
  if (!viewer.ok()) return done(viewer.status());
  auto looking = std::make_shared<Looking>(
      Looking{services, *std::move(viewer), std::move(submit), std::move(done)});
  if (!services.file_workers->PostCall([looking] { looking->Run(); }))
    looking->done(services.file_workers->Refusal());
}

}  // namespace muster::broker
