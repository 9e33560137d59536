#include "clients/cli/short_manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <initializer_list>
#include <vector>

#include "clients/cli/page.h"
#include "clients/cli/text.h"
#include "clients/cpp/yaml_reader.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

// More than agents send (agents/core/questions.h has 256 KiB, and a line that says so).
constexpr size_t kMaxManifestBytes = 512 << 10;
// Volumes of these names are what each run has: its script, its working directory, /dev/shm.
constexpr std::string_view kOwnVolumes = "muster-";
constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";

// Returns the node at the path, or a null node.
YAML::Node At(YAML::Node node, std::initializer_list<const char*> path) {
  for (const char* key : path) {
    if (!node.IsMap() || !node[key].IsDefined()) return YAML::Node();
    // Assigned, the one that was looked into would change.
    node.reset(node[key]);
  }
  return node;
}

std::string TextOf(const YAML::Node& node) {
  return node.IsScalar() ? OneLine(node.Scalar()) : std::string();
}

// "cpu 1, memory 2Gi, nvidia.com/gpu 4"; Muster writes cores in thousandths and memory in bytes.
std::string QuantitiesText(const YAML::Node& quantities) {
  std::vector<std::string> texts;
  for (const auto& quantity : quantities) {
    const std::string name = TextOf(quantity.first);
    std::string text = TextOf(quantity.second);
    if (name == "cpu") {
      if (const auto thousandths = contract::ParseCpus(text.substr(0, text.rfind('m')));
          text.ends_with('m') && thousandths.ok())
        text = contract::FormatCpus(*thousandths / 1000);
    } else if (const auto bytes = contract::ParseBytes(text); name == "memory" && bytes.ok()) {
      text = contract::FormatBytes(*bytes);
    }
    texts.push_back(fmt::format("{} {}", name, text));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// "persistentVolumeClaim data", "emptyDir".
std::string SourceText(const YAML::Node& volume) {
  for (const auto& source : volume) {
    const std::string kind = TextOf(source.first);
    if (kind == "name") continue;
    for (const char* key : {"claimName", "secretName", "name", "path"}) {
      if (const std::string name = TextOf(At(source.second, {key})); !name.empty())
        return fmt::format("{} {}", kind, name);
    }
    return kind;
  }
  return "";
}

std::string SourceOf(const YAML::Node& volumes, const std::string& name) {
  for (const YAML::Node& volume : volumes) {
    if (TextOf(At(volume, {"name"})) == name) return SourceText(volume);
  }
  return "";
}

// A line for each place where the program sees something of the job's own.
void AppendVolumes(const YAML::Node& mounts, const YAML::Node& volumes, Page* page) {
  for (const YAML::Node& mount : mounts) {
    const std::string name = TextOf(At(mount, {"name"}));
    if (name.starts_with(kOwnVolumes)) continue;
    const std::string sub_path = TextOf(At(mount, {"subPath"}));
    const bool is_read_only = TextOf(At(mount, {"readOnly"})) == "true";
    page->Line("Volume", fmt::format("{} at {}{}{}", SourceOf(volumes, name),
                                     TextOf(At(mount, {"mountPath"})),
                                     sub_path.empty() ? "" : fmt::format(", of it {}", sub_path),
                                     is_read_only ? ", read-only" : ""));
  }
}

std::optional<std::string> PageOf(const std::vector<YAML::Node>& objects) {
  // The Job's Secret follows it, always: without one the text ends too early.
  if (objects.size() < 2) return std::nullopt;
  const YAML::Node& job = objects[0];
  const YAML::Node pod = At(job, {"spec", "template", "spec"});
  const YAML::Node containers = At(pod, {"containers"});
  if (TextOf(At(job, {"kind"})) != "Job" || !containers.IsSequence() || containers.size() == 0)
    return std::nullopt;
  const YAML::Node main = containers[0];
  Page page(/*colours=*/false);
  page.Line("Job", fmt::format("{}/{}", TextOf(At(job, {"metadata", "namespace"})),
                               TextOf(At(job, {"metadata", "name"}))));
  std::vector<std::string> more;
  for (size_t i = 1; i < objects.size(); ++i) more.push_back(TextOf(At(objects[i], {"kind"})));
  page.Line("With its", fmt::format("{}", fmt::join(more, ", ")));
  page.Line("Image", TextOf(At(main, {"image"})));
  page.Line("Pods", TextOf(At(job, {"spec", "completions"})));
  page.Line("Requests", QuantitiesText(At(main, {"resources", "requests"})));
  page.Line("Limits", QuantitiesText(At(main, {"resources", "limits"})));
  page.Line("Queue", TextOf(At(job, {"metadata", "labels", kQueueLabel})));
  AppendVolumes(At(main, {"volumeMounts"}), At(pod, {"volumes"}), &page);
  return page.Take();
}

}  // namespace

std::optional<std::string> ShortManifest(std::string_view submission) {
  const auto objects = client::LoadYaml("manifest", submission, kMaxManifestBytes);
  if (!objects.ok()) return std::nullopt;
  try {
    return PageOf(*objects);
  } catch (const YAML::Exception&) {  // of another form than agents write
    return std::nullopt;
  }
}

}  // namespace muster::cli
