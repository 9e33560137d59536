#include "agents/core/remote_logs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "contract/text.h"

namespace muster::agents {
namespace {

// Looked at together.
constexpr size_t kMaxWants = 4096;
// Fetched together; bounds the memory, and how long one look takes.
constexpr size_t kMaxFetchBytes = 4 << 20;

// Reads the size from the host's answer about a file, with the errors of LogFile: a file that is
// not there yet is empty.
absl::StatusOr<uint64_t> SizeOf(const absl::StatusOr<hosts::FileInfo>& info,
                                const std::string& path) {
  if (absl::IsNotFound(info.status())) return uint64_t{0};
  if (!info.ok()) return absl::UnavailableError(info.status().message());
  if (info->type != hosts::FileType::kRegular) {
    return absl::FailedPreconditionError(path + " is not a plain file");
  }
  return info->size;
}

}  // namespace

bool RemoteLogs::Answers(const Fetched& fetched, uint64_t offset, size_t max_bytes) {
  if (!fetched.data.ok()) return true;
  return fetched.offset == offset && (fetched.is_end || fetched.data->size() >= max_bytes);
}

absl::StatusOr<std::string> RemoteLogs::Read(const std::string& path, uint64_t offset,
                                             size_t max_bytes) {
  auto found = fetched_.find(path);
  if (found == fetched_.end() || !Answers(found->second, offset, max_bytes)) {
    Fetch({path, offset}, max_bytes);
    found = fetched_.find(path);
  }
  Fetched& fetched = found->second;
  if (!fetched.data.ok() || fetched.data->size() <= max_bytes) {
    absl::StatusOr<std::string> data = std::move(fetched.data);
    fetched_.erase(found);
    return data;
  }
  std::string data = fetched.data->substr(0, max_bytes);
  fetched.data->erase(0, max_bytes);
  fetched.offset += max_bytes;
  return data;
}

absl::StatusOr<uint64_t> RemoteLogs::Size(const std::string& path) {
  return SizeOf(host_->Stat(path), path);
}

void RemoteLogs::Fetch(const Want& first, size_t max_bytes) {
  std::vector<Want> wants = {first};
  std::set<std::string> asked = {first.path};
  for (Want& want : wants_()) {
    if (wants.size() == kMaxWants) break;
    if (fetched_.contains(want.path) || !asked.insert(want.path).second) continue;
    wants.push_back(std::move(want));
  }
  std::vector<std::string> paths;
  for (const Want& want : wants) paths.push_back(want.path);
  const std::vector<absl::StatusOr<hosts::FileInfo>> infos = host_->StatMany(paths);

  std::vector<hosts::FilePart> parts;
  std::vector<uint64_t> sizes;
  for (size_t i = 0; i < wants.size(); ++i) {
    const absl::StatusOr<uint64_t> size = SizeOf(infos[i], wants[i].path);
    if (size.ok() && *size > wants[i].offset) {
      parts.push_back({wants[i].path, wants[i].offset, 0});
      sizes.push_back(*size);
      continue;
    }
    Fetched& fetched = fetched_[wants[i].path];
    fetched = {wants[i].offset, std::string(), true};
    if (!size.ok()) fetched.data = size.status();
  }
  // The first one gets what it wants whatever the others have.
  const size_t each = std::max(max_bytes, kMaxFetchBytes / std::max<size_t>(parts.size(), 1));
  const size_t count = std::max<size_t>(1, kMaxFetchBytes / each);
  parts.resize(std::min(parts.size(), count));
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].max_bytes = std::min<uint64_t>(each, sizes[i] - parts[i].offset);
  }
  if (!parts.empty()) FetchGrown(parts, sizes);
}

void RemoteLogs::FetchGrown(const std::vector<hosts::FilePart>& parts,
                            const std::vector<uint64_t>& sizes) {
  std::vector<absl::StatusOr<std::string>> contents = host_->ReadMany(parts);
  for (size_t i = 0; i < parts.size(); ++i) {
    Fetched& fetched = fetched_[parts[i].path];
    fetched.offset = parts[i].offset;
    if (!contents[i].ok()) {
      fetched.data = absl::UnavailableError(contents[i].status().message());
      continue;
    }
    // There are fewer bytes than a moment ago: somebody has cut the file.
    fetched.is_end = parts[i].offset + contents[i]->size() >= sizes[i] ||
                     contents[i]->size() < parts[i].max_bytes;
    fetched.data = std::move(contents[i]);
  }
}

}  // namespace muster::agents
