// Directories, and what containers need.
#include "agents/slurm/checks.h"
#include "agents/slurm/image_cache.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

constexpr uint32_t kReadableByOthers = 0077;

std::string_view WithoutEnd(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

}  // namespace

void JudgeDirectory(std::string_view setting, const std::string& path, const absl::Status& written,
                    agents::CheckList* checks) {
  const std::string subject = fmt::format("{} {}", setting, path);
  if (written.ok()) {
    return checks->Ok(v1::CHECK_CODE_STORAGE, subject,
                      "a file could be written and removed; that compute nodes see the same "
                      "directory is shown only by a job");
  }
  checks->Fail(
      v1::CHECK_CODE_STORAGE, subject, std::string(ToStd(written.message())),
      fmt::format("set slurm.{} to a directory that the agent's user may write to and that "
                  "the compute nodes share, or mend this one",
                  setting));
}

bool JudgePyxis(const absl::StatusOr<hosts::CommandResult>& help, agents::CheckList* checks) {
  constexpr char kSubject[] = "Pyxis";
  if (!help.ok() || !help->ok()) {
    checks->Warn(
        v1::CHECK_CODE_CONTAINERS, kSubject,
        fmt::format("srun --help could not be run: {}",
                    help.ok() ? WithoutEnd(help->stderr_data) : ToStd(help.status().message())));
    return false;
  }
  if (KnowsContainers(help->stdout_data)) {
    checks->Ok(v1::CHECK_CODE_CONTAINERS, kSubject, "srun knows --container-image");
    return true;
  }
  checks->Warn(v1::CHECK_CODE_CONTAINERS, kSubject,
               "srun does not know --container-image: jobs with an image cannot run",
               "for containers, ask the cluster's administrator to install Pyxis and enroot");
  return false;
}

void JudgeEnroot(const absl::StatusOr<hosts::CommandResult>& version, agents::CheckList* checks) {
  constexpr char kSubject[] = "enroot";
  if (version.ok() && version->ok()) {
    return checks->Ok(v1::CHECK_CODE_CONTAINERS, kSubject,
                      fmt::format("version {} on the login host; nodes need it, too",
                                  WithoutEnd(version->stdout_data)));
  }
  checks->Ok(v1::CHECK_CODE_CONTAINERS, kSubject,
             "not on the login host, where nothing needs it; that nodes have it is shown only by a "
             "job");
}

void JudgeCredentials(const std::string& path, const absl::StatusOr<hosts::FileInfo>& file,
                      agents::CheckList* checks) {
  const std::string subject = "registry credentials " + path;
  if (absl::IsNotFound(file.status())) {
    return checks->Ok(v1::CHECK_CODE_IMAGES, subject,
                      "there are none: images come from public registries only",
                      "for a private registry, write a line \"machine HOST login USER password "
                      "WORD\" there, mode 0600");
  }
  if (!file.ok()) {
    return checks->Warn(v1::CHECK_CODE_IMAGES, subject,
                        std::string(ToStd(file.status().message())));
  }
  if ((file->mode & kReadableByOthers) != 0) {
    return checks->Fail(v1::CHECK_CODE_IMAGES, subject,
                        fmt::format("its mode is {:04o}: others can read it", file->mode),
                        fmt::format("chmod 600 {}, and change the passwords in it", path));
  }
  checks->Ok(v1::CHECK_CODE_IMAGES, subject,
             fmt::format("{} bytes, mode {:04o}", file->size, file->mode));
}

}  // namespace muster::slurm
