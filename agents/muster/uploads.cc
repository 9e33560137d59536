#include "agents/muster/uploads.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "agents/files/job_files.h"
#include "agents/hosts/steady_now.h"
#include "contract/file_tree.h"

namespace muster::remote {
namespace {

// Digests of one question: as many as the API takes.
constexpr size_t kMaxDigests = 10'000;

}  // namespace

absl::StatusOr<Uploads::Files> Uploads::Fetch(const v1::JobSpec& spec) {
  const absl::Duration until = hosts::SteadyNow() + uploads::kFetchPatience;
  std::vector<uploads::Wanted> trees;
  for (const v1::Upload& upload : spec.uploads())
    trees.push_back({upload.tree_sha256(), contract::kMaxTreeBytes, /*is_exact=*/false});
  absl::StatusOr<uploads::FileCache::Hold> trees_hold =
      cache_.Fetch(trees, uploads::kFetchPatience);
  if (!trees_hold.ok()) return trees_hold.status();
  Files found;
  found.trees_hold = *std::move(trees_hold);
  std::map<std::string, uint64_t> content;  // sizes by digest, each file once
  for (const v1::Upload& upload : spec.uploads()) {
    const absl::StatusOr<std::string> bytes = cache_.ReadAll(upload.tree_sha256());
    if (!bytes.ok()) return bytes.status();
    found.files.push_back({upload.tree_sha256(), bytes->size()});
    const absl::StatusOr<v1::FileTree> tree = contract::ParseFileTree(*bytes);
    if (!tree.ok()) return tree.status();
    for (const v1::FileTreeEntry& entry : tree->entries()) {
      if (entry.kind() == v1::FILE_KIND_FILE) content.emplace(entry.sha256(), entry.size_bytes());
    }
  }
  std::vector<uploads::Wanted> wanted;
  for (const auto& [sha256, size] : content) {
    wanted.push_back({sha256, size, /*is_exact=*/true});
    found.files.push_back({sha256, size});
  }
  absl::StatusOr<uploads::FileCache::Hold> files_hold =
      cache_.Fetch(wanted, until - hosts::SteadyNow());
  if (!files_hold.ok()) return files_hold.status();
  found.files_hold = *std::move(files_hold);
  return found;
}

absl::Status Uploads::Send(const Files& files) {
  std::set<std::string> missing;
  for (size_t begin = 0; begin < files.files.size(); begin += kMaxDigests) {
    v1::FindMissingFilesRequest request;
    const size_t end = std::min(files.files.size(), begin + kMaxDigests);
    for (size_t i = begin; i < end; ++i) request.add_sha256(files.files[i].sha256);
    const absl::StatusOr<v1::FindMissingFilesResponse> answer =
        connection_.For("FindMissingFiles").FindMissingFiles(request);
    if (!answer.ok()) return answer.status();
    missing.insert(answer->missing_sha256().begin(), answer->missing_sha256().end());
  }
  if (missing.empty()) return absl::OkStatus();
  const std::unique_ptr<client::FileWriter> writer = connection_.For("UploadFiles").UploadFiles();
  for (const File& file : files.files) {
    if (missing.erase(file.sha256) == 0) continue;
    const absl::Status written = Write(file, writer.get());
    // The remote broker accepts no more, and says why at the end.
    if (absl::IsCancelled(written)) break;
    if (!written.ok()) return written;
  }
  return writer->Finish().status();
}

absl::Status Uploads::Write(const File& file, client::FileWriter* writer) {
  v1::UploadFilesRequest head;
  head.mutable_head()->set_sha256(file.sha256);
  head.mutable_head()->set_size_bytes(file.size_bytes);
  if (!writer->Write(head)) return absl::CancelledError();
  const auto send = [writer](std::string_view bytes) -> absl::Status {
    while (!bytes.empty()) {
      v1::UploadFilesRequest part;
      part.set_chunk(std::string(bytes.substr(0, contract::kMaxFileChunkBytes)));
      bytes.remove_prefix(part.chunk().size());
      if (!writer->Write(part)) return absl::CancelledError();
    }
    return absl::OkStatus();
  };
  return cache_.Read(file.sha256, file.size_bytes, send);
}

}  // namespace muster::remote
