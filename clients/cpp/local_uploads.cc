#include "clients/cpp/local_uploads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/time/clock.h"
#include "contract/errors.h"
#include "contract/file_tree.h"
#include "contract/text.h"
#include "contract/units.h"
#include "rpc/backoff.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;

// The bytes between two tellings of the progress.
constexpr uint64_t kProgressBytes = uint64_t{4} << 20;
// An upload of which nothing more arrives is tried again for this time, as long as streams are by
// default.
constexpr absl::Duration kPatience = absl::Minutes(10);
// Faults of files to bring along that are told at once.
constexpr size_t kMaxTold = 20;
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kMaxBackoff = absl::Seconds(5);

fs::path SourcePath(const std::string& source) {
  if (source != "~" && !source.starts_with("~/")) return source;
  const char* home = getenv("HOME");
  if (home == nullptr) return source;
  return fs::path(home) / fs::path(source.substr(std::min<size_t>(source.size(), 2)));
}

// Returns the same status, at its place.
absl::Status At(const std::string& place, const absl::Status& status, std::string_view more = "") {
  return absl::Status(
      status.code(),
      ToAbsl(fmt::format("{}: {}{}", place, std::string(ToStd(status.message())), more)));
}

// Advises about a directory that is not there: it may be meant to be the cluster's.
std::string UploadRemedy(const absl::Status& status, const LocalUpload& upload) {
  if (!absl::IsNotFound(status)) return "";
  if (!upload.source.starts_with('/'))
    return "; files and relative directories are those of this machine, from where muster is "
           "called";
  return "; it is looked for on this machine, as SkyPilot does. For a directory of the cluster, "
         "leave workdir out and give it by muster submit --workdir, or in a Muster job file";
}

// The place of a tree, and the name of a lone file there.
struct Layout {
  std::string directory;
  std::string name;
};

Layout LayoutOf(const LocalUpload& upload, bool is_directory) {
  if (is_directory) return {upload.target, ""};
  const size_t slash = upload.target.rfind('/');
  if (slash == std::string::npos) return {"", upload.target};
  return {upload.target.substr(0, slash), upload.target.substr(slash + 1)};
}

class Reader {
 public:
  Reader(uint64_t max_job_bytes, JobFile* file) : max_job_bytes_(max_job_bytes), file_(*file) {}

  absl::StatusOr<std::vector<LocalTree>> Read() {
    absl::Status wrong;
    std::string words;
    size_t told = 0;
    for (const LocalUpload& upload : file_.local_uploads) {
      const absl::Status status = Take(upload);
      if (status.ok()) continue;
      if (wrong.ok()) wrong = status;
      words += fmt::format("{}{}", words.empty() ? "" : "\n", ToStd(status.message()));
      if (++told == kMaxTold) break;
    }
    if (told > 1) return absl::Status(wrong.code(), ToAbsl(words));
    if (!wrong.ok()) return wrong;
    return std::move(trees_);
  }

 private:
  std::string PlaceOf(const LocalUpload& upload) const {
    const std::string place =
        file_.places.Find(upload.job, fmt::format("uploads[{}]", upload.upload));
    return place.empty() ? "--workdir" : place;
  }

  absl::Status Take(const LocalUpload& upload) {
    const fs::path path = SourcePath(upload.source);
    std::error_code error;
    const fs::file_status info = fs::status(path, error);
    const bool is_directory = fs::is_directory(info);
    if (!is_directory && upload.target.empty() && fs::exists(info)) {
      return At(PlaceOf(upload), absl::InvalidArgumentError(ToAbsl(fmt::format(
                                     "{} is a file; a working directory is a directory, and a file "
                                     "goes under file_mounts",
                                     path.native()))));
    }
    const Layout layout = LayoutOf(upload, is_directory);
    // The content of a directory that is named outright is wanted, whatever rules stand above it.
    const RulesAbove above = upload.target.empty() ? RulesAbove::kCount : RulesAbove::kDoNotCount;
    const auto index = TreeOf(path, above, layout.name);
    if (!index.ok())
      return At(PlaceOf(upload), index.status(), UploadRemedy(index.status(), upload));
    const LocalTree& tree = trees_[*index];
    uint64_t& bytes = job_bytes_[upload.job];
    bytes += tree.tree.total_bytes();
    if (bytes > max_job_bytes_) {
      return At(
          PlaceOf(upload),
          absl::InvalidArgumentError(ToAbsl(fmt::format(
              "with {} the job brings along {} bytes of files, and {} ({}) are the most; leave "
              "some out by a .musterignore file, or keep data on the cluster's storage",
              path.native(), bytes, max_job_bytes_, contract::FormatBytes(max_job_bytes_)))));
    }
    v1::Upload& out = *file_.specs[upload.job].mutable_uploads(upload.upload);
    out.set_tree_sha256(tree.sha256);
    out.set_path(layout.directory);
    return absl::OkStatus();
  }

  // Returns its number among the trees; jobs of a file often have one directory.
  absl::StatusOr<size_t> TreeOf(const fs::path& path, RulesAbove above, const std::string& name) {
    const auto [known, is_new] = known_.try_emplace({path, above, name}, trees_.size());
    if (!is_new) return known->second;
    auto tree = ReadLocalTree(path, max_job_bytes_, above, name);
    if (!tree.ok()) return tree.status();
    trees_.push_back(*std::move(tree));
    return known->second;
  }

  const uint64_t max_job_bytes_;
  JobFile& file_;
  std::vector<LocalTree> trees_;
  std::map<std::tuple<fs::path, RulesAbove, std::string>, size_t> known_;
  std::map<size_t, uint64_t> job_bytes_;
};

// Returns the files by digest, each once.
std::map<std::string, FileToSend> FilesOf(const std::vector<LocalTree>& trees) {
  std::map<std::string, FileToSend> files;
  for (const LocalTree& tree : trees) {
    for (const v1::FileTreeEntry& entry : tree.tree.entries()) {
      if (entry.kind() != v1::FILE_KIND_FILE) continue;
      files.try_emplace(entry.sha256(), FileToSend{entry.sha256(), entry.size_bytes(),
                                                   tree.sources.at(entry.sha256()), ""});
    }
    files.try_emplace(tree.sha256, FileToSend{tree.sha256, tree.bytes.size(), {}, tree.bytes});
  }
  return files;
}

// Digests of the list that the broker lacks.
absl::StatusOr<std::set<std::string>> AskMissing(Client* client,
                                                 const std::vector<std::string>& digests) {
  std::set<std::string> missing;
  for (size_t at = 0; at < digests.size(); at += contract::kMaxDigestsPerRequest) {
    v1::FindMissingFilesRequest request;
    const size_t end = std::min(digests.size(), at + contract::kMaxDigestsPerRequest);
    for (size_t i = at; i < end; ++i) request.add_sha256(digests[i]);
    const auto response = client->FindMissingFiles(request);
    if (!response.ok()) return response.status();
    missing.insert(response->missing_sha256().begin(), response->missing_sha256().end());
  }
  return missing;
}

absl::Status Changed(const fs::path& path) {
  return absl::AbortedError(ToAbsl(fmt::format("{} has changed while it was read", path.native())));
}

// One upload of many files.
class Sending {
 public:
  Sending(Client* client, const std::function<void(uint64_t)>& on_progress, uint64_t sent_before)
      : writer_(client->UploadFiles()),
        on_progress_(on_progress),
        sent_(sent_before),
        told_(sent_) {}

  absl::Status Send(const std::vector<FileToSend>& files) {
    for (const FileToSend& file : files) {
      const absl::Status status = SendFile(file);
      if (!status.ok()) return status;
      if (is_over_) break;  // the broker's answer says why
      on_progress_(told_ = sent_);
    }
    return InOurWords(writer_->Finish().status(), files);
  }

 private:
  // Names the file in an error of the broker, which knows digests only.
  static absl::Status InOurWords(const absl::Status& status, const std::vector<FileToSend>& files) {
    const auto info = contract::GetErrorInfo(status);
    if (!info || (info->reason() != "WRONG_DIGEST" && info->reason() != "WRONG_SIZE"))
      return status;
    const auto sha256 = info->metadata().find("sha256");
    if (sha256 == info->metadata().end()) return status;
    const auto file = std::find_if(files.begin(), files.end(), [&](const FileToSend& sent) {
      return sent.sha256 == sha256->second;
    });
    return file == files.end() || file->path.empty() ? status : Changed(file->path);
  }

  absl::Status SendFile(const FileToSend& file) {
    v1::UploadFilesRequest head;
    head.mutable_head()->set_sha256(file.sha256);
    head.mutable_head()->set_size_bytes(file.size_bytes);
    Write(head);
    if (file.path.empty()) {
      for (size_t at = 0; at < file.bytes.size() && !is_over_; at += contract::kMaxFileChunkBytes)
        WriteChunk(file.bytes.substr(at, contract::kMaxFileChunkBytes));
      return absl::OkStatus();
    }
    std::ifstream in(file.path, std::ios::binary);
    uint64_t left = file.size_bytes;
    while (left > 0 && !is_over_) {
      std::string chunk(std::min<uint64_t>(left, contract::kMaxFileChunkBytes), '\0');
      if (!in.read(chunk.data(), static_cast<std::streamsize>(chunk.size())))
        return Changed(file.path);
      left -= chunk.size();
      WriteChunk(std::move(chunk));
    }
    return absl::OkStatus();
  }

  void WriteChunk(std::string bytes) {
    sent_ += bytes.size();
    v1::UploadFilesRequest request;
    request.set_chunk(std::move(bytes));
    Write(request);
    if (sent_ - told_ >= kProgressBytes) on_progress_(told_ = sent_);
  }

  void Write(const v1::UploadFilesRequest& request) {
    if (!is_over_) is_over_ = !writer_->Write(request);
  }

  const std::unique_ptr<FileWriter> writer_;
  const std::function<void(uint64_t)>& on_progress_;
  uint64_t sent_;
  uint64_t told_;
  bool is_over_ = false;
};

uint64_t BytesOf(const std::vector<FileToSend>& files) {
  uint64_t bytes = 0;
  for (const FileToSend& file : files) bytes += file.size_bytes;
  return bytes;
}

}  // namespace

absl::StatusOr<std::vector<LocalTree>> ReadLocalUploads(uint64_t max_job_bytes, JobFile* file) {
  return Reader(max_job_bytes, file).Read();
}

absl::StatusOr<uint64_t> MaxJobBytes(Client* client) {
  const auto response = client->FindMissingFiles({});
  if (!response.ok()) return response.status();
  return response->max_job_bytes();
}

absl::StatusOr<MissingFiles> FindMissing(Client* client, const std::vector<LocalTree>& trees) {
  std::map<std::string, FileToSend> files = FilesOf(trees);
  std::vector<std::string> digests;
  for (const auto& [sha256, file] : files) digests.push_back(sha256);
  const auto lacks = AskMissing(client, digests);
  if (!lacks.ok()) return lacks.status();
  MissingFiles missing;
  for (auto& [sha256, file] : files) {
    if (lacks->contains(sha256)) missing.files.push_back(std::move(file));
  }
  missing.bytes = BytesOf(missing.files);
  return missing;
}

absl::Status SendFiles(Client* client, const MissingFiles& missing,
                       const std::function<void(uint64_t)>& on_progress) {
  rpc::Backoff backoff(kFirstBackoff, kMaxBackoff);
  std::vector<FileToSend> files = missing.files;
  absl::Time give_up = absl::Now() + kPatience;
  while (true) {
    const uint64_t sent_before = missing.bytes - BytesOf(files);
    const absl::Status status = Sending(client, on_progress, sent_before).Send(files);
    if (status.ok() || !MayBeRepeated(status)) return status;
    if (!backoff.Wait(give_up, contract::GetRetryDelay(status).value_or(absl::ZeroDuration())))
      return status;
    std::vector<std::string> digests;
    for (const FileToSend& file : files) digests.push_back(file.sha256);
    const auto lacks = AskMissing(client, digests);
    if (!lacks.ok()) return lacks.status();
    const size_t before = files.size();
    std::erase_if(files, [&](const FileToSend& file) { return !lacks->contains(file.sha256); });
    if (files.size() < before) give_up = absl::Now() + kPatience;
  }
}

}  // namespace muster::client
