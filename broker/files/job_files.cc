#include "broker/files/job_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/file_tree.h"
#include "contract/shell_environment.h"
#include "contract/text.h"
#include "contract/units.h"
#include "muster/v1/file_tree.pb.h"
#include "sync/mutex.h"

namespace muster::files {
namespace {

absl::Status NoTree(const std::string& field, std::string_view why) {
  return contract::BadField(field, fmt::format("names no tree that can be laid out: {}", why));
}

absl::Status FilesMissing(const std::string& field, uint32_t missing, std::string_view named) {
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "FILES_MISSING",
      fmt::format("{}: {} of the files that the job brings along are not at this broker: {}; "
                  "upload them (FindMissingFiles, UploadFiles) and submit again",
                  field, missing, named),
      {{"field", field}, {"missing", fmt::format("{}", missing)}});
}

std::string TreeItself(const std::string& tree_sha256) {
  return fmt::format("the tree {} itself", tree_sha256);
}

}  // namespace

absl::Status JobFiles::CheckShell(const v1::JobSpec& spec, std::string_view prefix,
                                  const Viewer& viewer) {
  if (!contract::HasShellEnvironment(spec)) return absl::OkStatus();
  const std::string field = fmt::format("{}slurm.batch_script.environment.file_sha256", prefix);
  const auto size_bytes =
      store_->Use(spec.slurm().batch_script().environment().file_sha256(), viewer);
  if (!size_bytes.ok()) return size_bytes.status();
  if (!*size_bytes) {
    return contract::Error(absl::StatusCode::kFailedPrecondition, "FILES_MISSING",
                           fmt::format("{}: the file with the variables that the script takes "
                                       "along is not at this broker; upload it (FindMissingFiles, "
                                       "UploadFiles) and submit again",
                                       field),
                           {{"field", field}, {"missing", "1"}});
  }
  if (**size_bytes <= contract::kMaxShellBytes) return absl::OkStatus();
  return contract::BadField(field, fmt::format("names a file of {} bytes, and {} are the most; "
                                               "take fewer variables along",
                                               **size_bytes, contract::kMaxShellBytes));
}

absl::Status JobFiles::Check(const v1::JobSpec& spec, std::string_view prefix,
                             const Viewer& viewer) {
  if (absl::Status shell = CheckShell(spec, prefix, viewer); !shell.ok()) return shell;
  uint64_t total = 0;
  for (int i = 0; i < spec.uploads_size(); ++i) {
    const std::string field = fmt::format("{}uploads[{}].tree_sha256", prefix, i);
    const auto look = LookAt(spec.uploads(i).tree_sha256(), viewer);
    if (absl::IsInvalidArgument(look.status()))
      return NoTree(field, ToStd(look.status().message()));
    if (!look.ok()) return look.status();
    if (look->missing > 0) return FilesMissing(field, look->missing, look->named);
    // Each tree's own sum was checked for an overflow, but the sum of 64 trees was not.
    total += std::min(look->total_bytes, std::numeric_limits<uint64_t>::max() - total);
  }
  const uint64_t most = store_->options().max_job_bytes;
  if (total <= most) return absl::OkStatus();
  return contract::BadField(
      fmt::format("{}uploads", prefix),
      fmt::format("bring along {} bytes of files, and {} ({}) are the most for one job at this "
                  "broker (files.max_job_bytes); leave some out by a .musterignore file, or keep "
                  "data on the cluster's storage and name its path there",
                  total, most, contract::FormatBytes(most)));
}

uint64_t JobFiles::ArchiveBytes(const v1::JobSpec& spec, const Viewer& viewer) {
  uint64_t total = 0;
  for (const v1::Upload& upload : spec.uploads()) {
    const auto look = LookAt(upload.tree_sha256(), viewer);
    if (look.ok())
      total += std::min(look->archive_bytes, std::numeric_limits<uint64_t>::max() - total);
  }
  return total;
}

absl::Status JobFiles::Use(const std::string& tree_sha256) {
  const auto look = LookAt(tree_sha256, Broker());
  return absl::IsInvalidArgument(look.status()) ? absl::OkStatus() : look.status();
}

absl::Status JobFiles::Share(const v1::JobSpec& spec, std::string_view prefix) {
  const std::string owner = OwnerOfProject(spec.project());
  if (contract::HasShellEnvironment(spec)) {
    absl::Status status = CheckShell(spec, prefix, Broker());
    if (!status.ok()) return status;
    status = store_->AddOwner({spec.slurm().batch_script().environment().file_sha256()}, owner);
    if (!status.ok()) return status;
  }
  for (int i = 0; i < spec.uploads_size(); ++i) {
    const std::string& tree = spec.uploads(i).tree_sha256();
    absl::Status status = ShareTree(tree, owner);
    if (absl::IsNotFound(status)) {
      return FilesMissing(fmt::format("{}uploads[{}].tree_sha256", prefix, i), 1, TreeItself(tree));
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status JobFiles::ShareTree(const std::string& tree_sha256, const std::string& owner) {
  // A viewer's key is no single owner's with these two signs.
  const std::string key = tree_sha256 + "->" + owner;
  Look look;
  if (Recall(key, &look)) return absl::OkStatus();
  look.time = store_->now();
  look.dropped = store_->dropped();
  const auto bytes = store_->ReadKept(tree_sha256, Broker());
  if (!bytes.ok()) return bytes.status();
  const auto tree = contract::ParseFileTree(*bytes);
  if (!tree.ok()) return tree.status();
  std::vector<std::string> sha256s = {tree_sha256};
  for (const v1::FileTreeEntry& entry : tree->entries()) {
    if (entry.kind() == v1::FILE_KIND_FILE) sha256s.push_back(entry.sha256());
  }
  if (absl::Status status = store_->AddOwner(sha256s, owner); !status.ok()) return status;
  Remember(key, look);
  return absl::OkStatus();
}

absl::StatusOr<JobFiles::Look> JobFiles::LookAt(const std::string& tree_sha256,
                                                const Viewer& viewer) {
  const std::string key = tree_sha256 + viewer.key();
  Look look;
  if (Recall(key, &look)) return look;
  auto looked = LookAtFiles(tree_sha256, viewer);
  if (looked.ok() && looked->missing == 0) Remember(key, *looked);
  return looked;
}

absl::StatusOr<JobFiles::Look> JobFiles::LookAtFiles(const std::string& tree_sha256,
                                                     const Viewer& viewer) {
  Look look;
  look.time = store_->now();
  look.dropped = store_->dropped();
  const auto note_missing = [&look](std::string_view what) {
    if (++look.missing <= kMaxNamed)
      look.named += fmt::format("{}{}", look.missing > 1 ? ", " : "", what);
    if (look.missing == kMaxNamed + 1) look.named += ", ...";
  };
  const auto size_bytes = store_->Use(tree_sha256, viewer);
  if (!size_bytes.ok()) return size_bytes.status();
  if (*size_bytes && **size_bytes > contract::kMaxTreeBytes) {
    return absl::InvalidArgumentError(ToAbsl(fmt::format("it has {} bytes, and {} are the most",
                                                         **size_bytes, contract::kMaxTreeBytes)));
  }
  const auto bytes = store_->ReadKept(tree_sha256, viewer);
  if (absl::IsNotFound(bytes.status())) {
    note_missing(TreeItself(tree_sha256));
    return look;
  }
  if (!bytes.ok()) return bytes.status();
  const auto tree = contract::ParseFileTree(*bytes);
  if (!tree.ok()) return tree.status();
  look.total_bytes = tree->total_bytes();
  look.archive_bytes = contract::ArchiveBytes(*tree);
  for (const v1::FileTreeEntry& entry : tree->entries()) {
    if (entry.kind() != v1::FILE_KIND_FILE) continue;
    const auto kept = store_->Use(entry.sha256(), viewer);
    if (!kept.ok()) return kept.status();
    if (!*kept) {
      note_missing(contract::Quoted(entry.path()));
    } else if (**kept != entry.size_bytes()) {
      return absl::InvalidArgumentError(
          ToAbsl(fmt::format("its file {} has {} bytes, and the tree says {}; make it anew",
                             contract::Quoted(entry.path()), **kept, entry.size_bytes())));
    }
  }
  return look;
}

bool JobFiles::Recall(const std::string& key, Look* look) {
  const MutexLock lock(mutex_);
  const auto it = remembered_.find(key);
  if (it == remembered_.end()) return false;
  *look = it->second;
  // One of the tree's files may have been damaged.
  if (look->dropped != store_->dropped()) return false;
  // Within this time no use needs to be noted again, and no file can have gone.
  const absl::Duration age = store_->now() - look->time;
  return age >= absl::ZeroDuration() && age < kUseGranularity;
}

void JobFiles::Remember(const std::string& key, const Look& look) {
  const MutexLock lock(mutex_);
  if (remembered_.size() >= kMaxRemembered) remembered_.clear();
  remembered_.insert_or_assign(key, look);
}

}  // namespace muster::files
