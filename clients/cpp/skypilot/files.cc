#include "clients/cpp/skypilot/files.h"

#include <fmt/format.h>

#include <string>

#include "clients/cpp/skypilot/values.h"
#include "contract/characters.h"
#include "contract/storage_uri.h"
#include "contract/validate.h"

namespace muster::client::skypilot {
namespace {

// A text with its variables. On a problem it is noted, and false returned.
bool ReadPath(YamlReader& in, const Variables& variables, const YamlValue& value,
              const std::string& text, std::string* out) {
  const absl::StatusOr<std::string> path = Substitute(text, variables);
  if (path.ok()) {
    *out = *path;
  } else {
    in.ProblemOf(value, path.status());
  }
  return path.ok();
}

}  // namespace

void ReadWorkdir(YamlReader& in, const Variables& variables, const YamlValue& value,
                 v1::JobSpec* spec) {
  in.StandsFor(value, "working_directory");
  if (value.node.IsMap()) {
    return in.Problem(value,
                      "Muster clones no repositories yet; clone it in setup, with git clone");
  }
  std::string text;
  if (!ReadText(in, value, &text) || !ReadPath(in, variables, value, text, &text)) return;
  if (text.starts_with('/')) {
    spec->set_working_directory(text);
    return;
  }
  in.Problem(value, fmt::format("{} is a directory of your own machine, and Muster uploads none "
                                "yet; copy it to the cluster and write its absolute path there",
                                contract::Quoted(text)));
}

void ReadFileMounts(YamlReader& in, const Variables& variables, const YamlValue& value,
                    v1::JobSpec* spec) {
  in.StandsFor(value, "inputs");
  in.Entries(value, [&](const std::string& key, const YamlValue& inner) {
    std::string target;
    std::string source;
    if (!ReadPath(in, variables, inner, key, &target)) return;
    if (inner.node.IsMap()) {
      return in.Problem(inner,
                        "Muster mounts no buckets; copy the data to the cluster, and write "
                        "lustre:///PATH, or fetch it in setup");
    }
    if (!ReadText(in, inner, &source) || !ReadPath(in, variables, inner, source, &source)) return;
    if (source.find("://") == source.npos) {
      return in.Problem(inner, fmt::format("{} is a file of your own machine, and Muster uploads "
                                           "none yet; copy it to the cluster and name it there, "
                                           "as in lustre:///PATH",
                                           contract::Quoted(source)));
    }
    if (static_cast<size_t>(spec->inputs_size()) == contract::kMaxInputs) {
      return in.Problem(inner, fmt::format("{} files are the most", contract::kMaxInputs));
    }
    const absl::StatusOr<contract::StorageUri> uri = contract::ParseStorageUri("", source);
    if (!uri.ok()) return in.ProblemOf(inner, uri.status());
    const bool is_there = uri->path == target;
    if (!is_there && spec->image().empty()) {
      return in.Problem(inner, fmt::format("without a container the data is at {} alone; mount it "
                                           "there, or name an image (image_id: docker:NAME:TAG)",
                                           uri->path));
    }
    in.StandsFor(inner, fmt::format("inputs[{}]", spec->inputs_size()));
    v1::Input* input = spec->add_inputs();
    input->set_uri(source);
    if (!is_there) input->set_path(target);
  });
}

void RefuseVolumes(YamlReader& in, const YamlValue& value) {
  if (value.node.IsMap() && value.node.size() == 0) return;
  in.Problem(value,
             "Muster has no volumes of SkyPilot's; in a Muster job file a claim is "
             "kubernetes: {volumes: [{mount_path: PATH, claim: NAME}]}, and a directory of "
             "the cluster mounts: [{source: PATH, target: PATH}]");
}

}  // namespace muster::client::skypilot
