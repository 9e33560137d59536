#include "agents/kubernetes/manifest/brought_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "agents/files/tar_stream.h"
#include "agents/kubernetes/manifest/run_secret.h"
#include "contract/admission.h"
#include "contract/errors.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

constexpr char kVolume[] = "muster-files";
// The container's directory of the parts, by names that sort as they follow each other.
constexpr char kPartsDirectory[] = "/muster/files";
// The image's user, which may be any, must be able to read them.
constexpr int kPartMode = 0444;

}  // namespace

std::string NameOfPart(const std::string& run_key, size_t index) {
  return fmt::format("{}-files-{}", run_key, index);
}

uint64_t ArchiveBytesOf(const Json& job) {
  const Json& annotations = At(job, "metadata/annotations");
  uint64_t bytes = 0;
  if (annotations.is_object() && annotations.contains(kArchiveAnnotation) &&
      annotations[kArchiveAnnotation].is_string() &&
      absl::SimpleAtoi(annotations[kArchiveAnnotation].get<std::string>(), &bytes))
    return bytes;
  return 0;
}

absl::Status CheckArchive(const v1::FileTree& tree) {
  const std::string words = contract::ArchiveTooLarge(uploads::TarBytes(tree), kMaxArchiveBytes);
  return words.empty() ? absl::OkStatus() : contract::BadField("uploads", words);
}

absl::StatusOr<std::vector<std::string>> PackFiles(const uploads::LocalFiles& files,
                                                   uploads::FileCache* cache) {
  if (absl::Status status = CheckArchive(files.tree); !status.ok()) return status;
  std::vector<std::string> parts;
  const absl::Status status = uploads::WriteTar(files, cache, [&](std::string_view bytes) {
    while (!bytes.empty()) {
      if (parts.empty() || parts.back().size() == kMaxPartBytes) parts.emplace_back();
      const std::string_view piece = bytes.substr(0, kMaxPartBytes - parts.back().size());
      parts.back().append(piece);
      bytes.remove_prefix(piece.size());
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return parts;
}

std::vector<std::string> BlankParts(uint64_t archive_bytes) {
  std::vector<std::string> parts;
  for (; archive_bytes > 0; archive_bytes -= parts.back().size())
    parts.emplace_back(std::min<uint64_t>(archive_bytes, kMaxPartBytes), '\0');
  return parts;
}

void AddBroughtFiles(const std::string& run_key, size_t parts, PodVolumes* volumes) {
  Json sources = Json::array();
  for (size_t i = 0; i < parts; ++i) {
    Json item = {{"key", kPartFile}, {"path", fmt::format("{:04}", i)}};
    sources.push_back(
        {{"secret",
          {{"name", NameOfPart(run_key, i)}, {"items", Json::array({std::move(item)})}}}});
  }
  volumes->volumes.push_back(
      {{"name", kVolume},
       {"projected", {{"defaultMode", kPartMode}, {"sources", std::move(sources)}}}});
  volumes->storage_mounts.push_back(
      {{"name", kVolume}, {"mountPath", kPartsDirectory}, {"readOnly", true}});
  volumes->storage_words += fmt::format("muster_unpack {} {}\n", kPartsDirectory, kWorkDirectory);
}

}  // namespace muster::kubernetes
