#include "clients/cpp/skypilot/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "clients/cpp/local_upload.h"
#include "clients/cpp/skypilot/values.h"
#include "contract/characters.h"
#include "contract/storage_uri.h"
#include "contract/validate.h"

namespace muster::client::skypilot {
namespace {

// Reads a text with its variables. On a problem it is noted, and false returned.
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

constexpr std::string_view kFromElsewhere =
    "copy the data to the cluster and write lustre:///PATH, or fetch it in setup";

// Returns whether it is a bucket, or anything else that a cluster does not have in its own storage.
bool IsElsewhere(const std::string& uri) {
  constexpr std::string_view kStorage[] = {"lustre", "slurm", "file", "local"};
  const std::string scheme = absl::AsciiStrToLower(uri.substr(0, uri.find("://")));
  return scheme.find('/') == scheme.npos &&
         std::find(std::begin(kStorage), std::end(kStorage), scheme) == std::end(kStorage);
}

// Adds data of the cluster.
void AddInput(YamlReader& in, const YamlValue& value, const std::string& source,
              const std::string& target, bool has_image, v1::JobSpec* spec) {
  if (static_cast<size_t>(spec->inputs_size()) == contract::kMaxInputs) {
    return in.Problem(value, fmt::format("{} files are the most", contract::kMaxInputs));
  }
  if (IsElsewhere(source)) {
    return in.Problem(value, fmt::format("Muster fetches nothing from {}; {}",
                                         contract::Quoted(source), kFromElsewhere));
  }
  const absl::StatusOr<contract::StorageUri> uri = contract::ParseStorageUri("", source);
  if (!uri.ok()) return in.ProblemOf(value, uri.status());
  const bool is_there = uri->path == target;
  if (!is_there && !has_image) {
    return in.Problem(value, fmt::format("without a container the data is at {} alone; mount it "
                                         "there, or name an image (image_id: docker:NAME:TAG), in "
                                         "each alternative if there are several",
                                         uri->path));
  }
  in.StandsFor(value, fmt::format("inputs[{}]", spec->inputs_size()));
  v1::Input* input = spec->add_inputs();
  input->set_uri(source);
  if (!is_there) input->set_path(target);
}

}  // namespace

void ReadWorkdir(YamlReader& in, const Variables& variables, const YamlValue& value, size_t job,
                 v1::JobSpec* spec, std::vector<LocalUpload>* uploads) {
  if (value.node.IsMap()) {
    return in.Problem(value,
                      "Muster clones no repositories yet; clone it in setup, with git clone");
  }
  std::string text;
  if (!ReadText(in, value, &text) || !ReadPath(in, variables, value, text, &text)) return;
  if (text.empty()) return in.Problem(value, "is empty; write a directory of this machine");
  in.StandsFor(value, fmt::format("uploads[{}]", spec->uploads_size()));
  AddLocalUpload(job, text, "", spec, uploads);
}

void ReadFileMounts(YamlReader& in, const Variables& variables, const YamlValue& value, size_t job,
                    bool has_image, v1::JobSpec* spec, std::vector<LocalUpload>* uploads) {
  in.StandsFor(value, "inputs");
  in.Entries(value, [&](const std::string& key, const YamlValue& inner) {
    std::string target;
    std::string source;
    if (!ReadPath(in, variables, inner, key, &target)) return;
    if (inner.node.IsMap()) {
      return in.Problem(inner, fmt::format("Muster mounts no buckets; {}", kFromElsewhere));
    }
    if (!ReadText(in, inner, &source) || !ReadPath(in, variables, inner, source, &source)) return;
    if (source.find("://") != source.npos)
      return AddInput(in, inner, source, target, has_image, spec);
    const absl::StatusOr<std::string> place = UploadTarget(target);
    if (!place.ok()) return in.ProblemOf(inner, place.status());
    in.StandsFor(inner, fmt::format("uploads[{}]", spec->uploads_size()));
    AddLocalUpload(job, source, *place, spec, uploads);
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
