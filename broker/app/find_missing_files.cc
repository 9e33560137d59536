#include "broker/app/find_missing_files.h"

#include <fmt/format.h>

#include <string>

#include "absl/container/flat_hash_set.h"
#include "broker/app/file_viewer.h"
#include "broker/files/file_store.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/file_tree.h"

namespace muster::broker {
namespace {

absl::Status CheckDigests(const v1::FindMissingFilesRequest& request) {
  if (request.sha256_size() > static_cast<int>(contract::kMaxDigestsPerRequest)) {
    return contract::BadField(
        "sha256", fmt::format("{} digests; the most in one call is {}", request.sha256_size(),
                              contract::kMaxDigestsPerRequest));
  }
  for (int i = 0; i < request.sha256_size(); ++i) {
    if (contract::IsSha256(request.sha256(i))) continue;
    return contract::BadField(
        fmt::format("sha256[{}]", i),
        fmt::format("{} is no SHA-256; use the 64 digits 0-9 and a-f of the file's",
                    contract::Quoted(request.sha256(i))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::FindMissingFilesResponse> FindMissingFiles(
    const Principal& principal, const Services& services,
    const v1::FindMissingFilesRequest& request) {
  const auto viewer = FileViewer(principal, UseCase::kBringFiles);
  if (!viewer.ok()) return viewer.status();
  if (absl::Status status = CheckDigests(request); !status.ok()) return status;
  v1::FindMissingFilesResponse response;
  response.set_max_job_bytes(services.files->options().max_job_bytes);
  absl::flat_hash_set<std::string> seen;
  for (const std::string& sha256 : request.sha256()) {
    if (!seen.insert(sha256).second) continue;
    const auto size_bytes = services.files->Use(sha256, *viewer);
    if (!size_bytes.ok()) return size_bytes.status();
    if (!*size_bytes) response.add_missing_sha256(sha256);
  }
  return response;
}

}  // namespace muster::broker
