#include "clients/cpp/local_upload.h"

#include <fmt/format.h>

#include <algorithm>

#include "contract/characters.h"
#include "contract/text.h"

namespace muster::client {
namespace {

void RemoveUpload(size_t job, int upload, JobFile* file) {
  file->specs[job].mutable_uploads()->DeleteSubrange(upload, 1);
  auto& uploads = file->local_uploads;
  std::erase_if(uploads, [&](const LocalUpload& u) { return u.job == job && u.upload == upload; });
  for (LocalUpload& other : uploads) {
    if (other.job == job && other.upload > upload) --other.upload;
  }
}

}  // namespace

absl::StatusOr<std::string> UploadTarget(const std::string& written) {
  if (written.starts_with('/') || written.starts_with('~')) {
    return absl::InvalidArgumentError(ToAbsl(fmt::format(
        "{} is a place of the cluster, which all its jobs share; a job's files go into the run's "
        "own working directory: write a relative path, such as ./{}",
        contract::Quoted(written),
        written.substr(std::min(written.rfind('/') + 1, written.size())))));
  }
  std::string_view target = written;
  while (target.starts_with("./")) target.remove_prefix(2);
  while (target.ends_with('/')) target.remove_suffix(1);
  return std::string(target == "." ? std::string_view() : target);
}

void AddLocalUpload(size_t job, std::string source, std::string target, v1::JobSpec* spec,
                    std::vector<LocalUpload>* uploads) {
  const int index = spec->uploads_size();
  v1::Upload* upload = spec->add_uploads();
  upload->set_tree_sha256(std::string(kUnreadTree));
  upload->set_path(target);
  uploads->push_back({job, index, std::move(source), std::move(target)});
}

void SetWorkdir(const std::string& path, bool is_local, size_t job, JobFile* file) {
  const auto is_workdir = [job](const LocalUpload& u) { return u.job == job && u.target.empty(); };
  const auto before =
      std::find_if(file->local_uploads.begin(), file->local_uploads.end(), is_workdir);
  if (before != file->local_uploads.end()) RemoveUpload(job, before->upload, file);
  v1::JobSpec& spec = file->specs[job];
  spec.clear_working_directory();
  if (path.starts_with('/') && !is_local) return spec.set_working_directory(path);
  AddLocalUpload(job, path, "", &spec, &file->local_uploads);
}

}  // namespace muster::client
