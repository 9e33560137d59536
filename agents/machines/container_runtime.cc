#include "agents/machines/container_runtime.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "agents/machines/container.h"
#include "contract/image.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// docker waits for its daemon.
constexpr absl::Duration kPatience = absl::Seconds(30);
// Bytes of a tool's output that are quoted.
constexpr size_t kMaxWordsBytes = 200;

// A question for each, which shows that it works.
const std::vector<std::vector<std::string>>& Questions() {
  static const auto& questions = *new std::vector<std::vector<std::string>>{
      {kPodman, "--version"},
      {kDocker, "version", "--format", "{{.Server.Version}}"},
      {kEnroot, "version"},
      {kApptainer, "--version"}};
  return questions;
}

std::optional<Misfit> CheckMountPath(int index, std::string_view end, std::string_view path) {
  // All tools have ':' between the two, and some a ',' between options.
  if (path.find_first_of(":,\n") == std::string_view::npos) return std::nullopt;
  return Misfit{fmt::format("mounts[{}].{} \"{}\" cannot be mounted into a container on machines",
                            index, end, path),
                contract::FailureCause::kMountPath};
}

}  // namespace

absl::StatusOr<ContainerRuntime> FindContainerRuntime(const std::string& wanted,
                                                      hosts::Host& host) {
  if (wanted == kNoContainers) return ContainerRuntime{.why = "machines.container_runtime is none"};
  ContainerRuntime runtime;
  for (const std::vector<std::string>& question : Questions()) {
    const std::string& tool = question.front();
    if (wanted != kFirstFound && wanted != tool) continue;
    const absl::StatusOr<hosts::CommandResult> answer =
        host.Run({.argv = question, .timeout = kPatience});
    if (absl::IsNotFound(answer.status())) continue;
    if (!answer.ok() && !hosts::NotStarted(answer.status()))
      return absl::UnavailableError(answer.status().message());
    if (answer.ok() && answer->ok()) return ContainerRuntime{.tool = tool};
    const std::string words = answer.ok() ? answer->stderr_data : MessageOf(answer.status());
    runtime.why += fmt::format(
        "{}{} does not work there: {}", runtime.why.empty() ? "" : "; ", tool,
        ToStd(absl::StripAsciiWhitespace(absl::string_view(words).substr(0, kMaxWordsBytes))));
  }
  if (runtime.why.empty()) {
    runtime.why = wanted == kFirstFound
                      ? "it has none of podman, docker, enroot and apptainer"
                      : fmt::format("it has no {} (machines.container_runtime)", wanted);
  }
  return runtime;
}

std::optional<Misfit> CheckImage(const v1::JobSpec& spec, const ContainerRuntime& runtime) {
  if (spec.image().empty()) return std::nullopt;
  const absl::StatusOr<contract::Image> image = contract::ParseImage(spec.image());
  if (!image.ok()) return Misfit{MessageOf(image.status()), contract::FailureCause::kImageInvalid};
  if (image->is_file()) {
    return Misfit{
        fmt::format("the job's image \"{}\" is a file, which only Slurm runs", image->path),
        contract::FailureCause::kImageIsFile};
  }
  if (runtime.tool.empty()) {
    return Misfit{
        fmt::format("the job has an image, and the machine runs no containers: {}", runtime.why),
        contract::FailureCause::kNoContainerTool,
        /*is_of_containers=*/true};
  }
  for (int i = 0; i < spec.mounts_size(); ++i) {
    if (auto misfit = CheckMountPath(i, "source", spec.mounts(i).source())) return misfit;
    if (auto misfit = CheckMountPath(i, "target", spec.mounts(i).target())) return misfit;
  }
  return std::nullopt;
}

}  // namespace muster::machines
