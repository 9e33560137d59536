#include "agents/core/host_run_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <utility>

#include "agents/core/run_files_script.h"
#include "agents/hosts/file_error.h"
#include "agents/hosts/remote_script.h"
#include "contract/characters.h"
#include "contract/file_tree.h"
#include "contract/text.h"

namespace muster::agents {
namespace {

using contract::Quoted;

// The script's exit codes beside 0 and 1.
constexpr int kNoDirectory = 81;
constexpr int kLeadsOut = 82;
constexpr int kNoFile = 83;
constexpr int kReplaced = 84;

// The mode, a size and a link's target.
constexpr size_t kMaxLookBytes = 8 << 10;
// It holds kMaxNamesInDirectory names of usual length, and targets of links.
constexpr size_t kMaxListBytes = 32 << 20;
// One command names at most this many files; all arguments together have 1 MiB over SSH
// (remote_script.cc).
constexpr size_t kMaxFilesAtOnce = 256;
constexpr size_t kMaxNameBytesAtOnce = 256 << 10;
// Room for the frame of a part and for error messages.
constexpr size_t kFrameBytes = 8 << 10;
// After an answer within kQuick the next one may be larger, after one that took kSlow, smaller.
constexpr std::chrono::seconds kQuick{1};
constexpr std::chrono::seconds kSlow{5};
// Bytes of a host's answer that a message quotes.
constexpr size_t kQuotedBytes = 500;

v1::FileTreeEntry EntryOf(mode_t type, uint32_t permissions, uint64_t size, std::string target) {
  v1::FileTreeEntry entry;
  if (type == S_IFDIR) entry.set_kind(v1::FILE_KIND_DIRECTORY);
  if (type == S_IFLNK) {
    entry.set_kind(v1::FILE_KIND_SYMLINK);
    entry.set_link_target(std::move(target));
  }
  if (type == S_IFREG) {
    entry.set_kind(v1::FILE_KIND_FILE);
    entry.set_size_bytes(size);
    entry.set_executable((permissions & S_IXUSR) != 0);
    entry.set_owner_only((permissions & (S_IRWXG | S_IRWXO)) == 0);
  }
  return entry;
}

mode_t TypeOf(std::string_view letter) {
  if (letter == "f") return S_IFREG;
  if (letter == "d") return S_IFDIR;
  return letter == "l" ? S_IFLNK : 0;
}

// Takes the bytes up to the separator, and the separator. Nothing if it does not come.
std::optional<std::string_view> Cut(std::string_view separator, std::string_view* text) {
  const size_t at = text->find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view part = text->substr(0, at);
  text->remove_prefix(at + separator.size());
  return part;
}

template <typename Number>
std::optional<Number> NumberIn(std::optional<std::string_view> text, int base = 10) {
  Number number = 0;
  if (!text.has_value()) return std::nullopt;
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), number, base);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

class HostRunFiles final : public RunFiles {
 public:
  HostRunFiles(std::unique_ptr<hosts::Host> host, RunPlace place)
      : host_(std::move(host)), place_(std::move(place)) {}

  absl::StatusOr<v1::FileTreeEntry> LookAt(const std::string& path, bool follow) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  absl::StatusOr<std::string> Read(const std::string& path, uint64_t offset,
                                   size_t max_bytes) override;

 private:
  // The part of one file that one command is to read.
  struct Wanted {
    std::string path;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  // The part of one file that it has read.
  struct Part {
    absl::Status status;
    uint64_t offset = 0;
    std::string bytes;
    bool is_last = false;  // of its file

    bool Covers(uint64_t at) const {
      return !status.ok() || (at >= offset && (is_last || at < offset + bytes.size()));
    }
  };
  // Holds small files that follow each other in one directory, whole, or a part of one file.
  struct Batch {
    std::vector<Wanted> files;
    bool are_whole = false;
  };
  // The host's answer to a batch.
  struct Answer {
    Batch batch;
    std::string mark;  // behind each part
    absl::StatusOr<std::string> content;
    std::chrono::steady_clock::duration time;
  };
  using Listing = std::map<std::string, v1::FileTreeEntry>;  // by name

  absl::StatusOr<std::string> Ask(std::string_view verb, const std::string& path,
                                  std::vector<std::string> words, size_t max_bytes) const;
  absl::Status NoAnswer(std::string_view words) const;
  absl::Status ErrorOf(int code, std::string_view words, const std::string& path) const;
  absl::Status Malformed() const { return NoAnswer("its answer is not whole"); }

  const v1::FileTreeEntry* Known(const std::string& path) const;
  Batch WhatToRead(const std::string& path, uint64_t offset, size_t max_bytes) const;
  void AddNeighbours(const std::string& path, std::vector<Wanted>* files) const;
  Answer Fetch(Batch batch) const;
  // Returns the one that is on its way, if it is for this batch.
  Answer TakeAnswer(Batch batch);
  // Reads from the host into `ahead_`.
  absl::Status ReadAhead(Batch batch);
  // Lets the host read the next piece while this one is sent.
  void FetchWhatFollows(const Wanted& wanted, const Part& part);
  absl::StatusOr<Part> TakePart(const Wanted& wanted, bool is_whole, const std::string& mark,
                                std::string_view* rest);
  // Checks that the file that is read piece by piece is still the same one.
  absl::Status Watch(const Wanted& wanted, std::string_view identity);
  void Pace(size_t bytes, std::chrono::steady_clock::duration time);

  const std::unique_ptr<hosts::Host> host_;
  const RunPlace place_;
  // These entries are still to be visited, of the directory that was listed last and of those above
  // it.
  std::map<std::string, Listing> listings_;
  std::map<std::string, Part> ahead_;  // by path; no more than one command has read
  size_t read_ahead_bytes_ = kFirstReadAheadBytes;
  // This file is read piece by piece; the other member says which one it was at its first piece.
  std::string watched_path_;
  std::string watched_identity_;
  // The file that was looked at last.
  std::string looked_at_;
  uint64_t looked_at_bytes_ = 0;
  // The read under way, if it is valid. Stands last: it uses the other members until it is there.
  std::future<Answer> coming_;
};

// ---- the host

absl::Status HostRunFiles::NoAnswer(std::string_view words) const {
  return absl::UnavailableError(
      ToAbsl(fmt::format("{} ({}) sends no files now: {}", place_.host_title, host_->Name(),
                         words.substr(0, kQuotedBytes))));
}

absl::Status HostRunFiles::ErrorOf(int code, std::string_view words,
                                   const std::string& path) const {
  if (code == kNoDirectory) return NoWorkingDirectory(place_.gone);
  if (code == kLeadsOut) return PathLeadsOut(path.empty() ? place_.directory : path);
  if (code == kNoFile) return PathNotFound(path);
  if (code == kReplaced) {
    return absl::AbortedError(ToAbsl(fmt::format(
        "{} was replaced by another file while it was read; copy it again", Quoted(path))));
  }
  if (const int error = hosts::ErrnoFromWords(words); error != 0) return RunFileError(error, path);
  return absl::UnknownError(
      ToAbsl(fmt::format("{} ({}) could not read {}: exit code {}, and \"{}\"", place_.host_title,
                         host_->Name(), Quoted(path), code, words.substr(0, kQuotedBytes))));
}

absl::StatusOr<std::string> HostRunFiles::Ask(std::string_view verb, const std::string& path,
                                              std::vector<std::string> words,
                                              size_t max_bytes) const {
  hosts::Command command;
  command.argv = {
      "/bin/sh",        "-c", std::string(RunFilesScript()), "sh", std::string(verb), place_.root,
      place_.directory, path};
  std::move(words.begin(), words.end(), std::back_inserter(command.argv));
  command.timeout = kHostFilesPatience;
  command.max_stdout_bytes = max_bytes;
  absl::StatusOr<hosts::CommandResult> result = host_->Run(command);
  if (absl::IsResourceExhausted(result.status())) return result.status();
  if (absl::IsDeadlineExceeded(result.status())) {
    return NoAnswer(fmt::format("it did not read {} within {}; its file system may hang",
                                Quoted(path), absl::FormatDuration(kHostFilesPatience)));
  }
  // The shell is ours; what kept it from starting is what counts.
  if (!result.ok()) return NoAnswer(hosts::CauseOf(result.status()));
  if (!result->ok()) return ErrorOf(result->exit_code, result->stderr_data, path);
  return std::move(result->stdout_data);
}

// ---- looking

const v1::FileTreeEntry* HostRunFiles::Known(const std::string& path) const {
  const auto listing = listings_.find(DirectoryOf(path));
  if (listing == listings_.end()) return nullptr;
  const auto entry = listing->second.find(NameOf(path));
  return entry == listing->second.end() ? nullptr : &entry->second;
}

absl::StatusOr<v1::FileTreeEntry> HostRunFiles::LookAt(const std::string& path, bool follow) {
  if (const v1::FileTreeEntry* known = Known(path); known != nullptr && !follow) return *known;
  const auto answer =
      Ask("look", path, {follow || path.empty() ? "follow" : "stay"}, kMaxLookBytes);
  if (!answer.ok()) return answer.status();
  std::string_view rest = *answer;
  const auto mode = NumberIn<uint32_t>(Cut(" ", &rest), 16);
  const auto size = NumberIn<uint64_t>(Cut("\n", &rest));
  if (!mode.has_value() || !size.has_value()) return Malformed();
  looked_at_ = path;
  looked_at_bytes_ = *size;
  return EntryOf(*mode & S_IFMT, *mode & ALLPERMS, *size, std::string(rest));
}

absl::StatusOr<std::vector<std::string>> HostRunFiles::List(const std::string& path) {
  const absl::Status too_many = absl::ResourceExhaustedError(
      ToAbsl(fmt::format("has more than {} files", kMaxNamesInDirectory)));
  const absl::StatusOr<std::string> answer = Ask("list", path, {}, kMaxListBytes);
  if (absl::IsResourceExhausted(answer.status())) return too_many;
  if (!answer.ok()) return answer.status();
  constexpr std::string_view kEnd("\0", 1);
  Listing listing;
  for (std::string_view rest = *answer; !rest.empty();) {
    const auto permissions = NumberIn<uint32_t>(Cut(" ", &rest), 8);
    const auto size = NumberIn<uint64_t>(Cut(" ", &rest));
    const auto type = Cut(kEnd, &rest);
    const auto name = Cut(kEnd, &rest);
    const auto target = Cut(kEnd, &rest);
    if (!permissions.has_value() || !size.has_value() || !target.has_value()) return Malformed();
    if (listing.size() == kMaxNamesInDirectory) return too_many;
    listing.emplace(*name, EntryOf(TypeOf(*type), *permissions, *size, std::string(*target)));
  }
  std::vector<std::string> names;
  names.reserve(listing.size());
  for (const auto& [name, entry] : listing) names.push_back(name);
  std::erase_if(listings_, [&](const auto& earlier) {
    return !earlier.first.empty() && !path.starts_with(earlier.first + "/");
  });
  listings_[path] = std::move(listing);
  return names;
}

// ---- reading

// Files between two directories are read together: a directory's own files come in between, and
// would be read ahead instead.
void HostRunFiles::AddNeighbours(const std::string& path, std::vector<Wanted>* files) const {
  const std::string directory = DirectoryOf(path);
  const Listing& listing = listings_.at(directory);
  const std::string above = directory.empty() ? "" : directory + "/";
  uint64_t bytes = files->front().bytes;
  size_t name_bytes = path.size();
  for (auto next = listing.upper_bound(NameOf(path)); next != listing.end(); ++next) {
    const auto& [name, entry] = *next;
    if (entry.kind() == v1::FILE_KIND_DIRECTORY || files->size() == kMaxFilesAtOnce) return;
    if (entry.kind() != v1::FILE_KIND_FILE) continue;
    bytes += entry.size_bytes();
    name_bytes += name.size();
    if (bytes > read_ahead_bytes_ || name_bytes > kMaxNameBytesAtOnce) return;
    files->push_back({.path = above + name, .bytes = entry.size_bytes()});
  }
}

HostRunFiles::Batch HostRunFiles::WhatToRead(const std::string& path, uint64_t offset,
                                             size_t max_bytes) const {
  Batch batch;
  const v1::FileTreeEntry* known = Known(path);
  if (known != nullptr && offset == 0 && known->size_bytes() <= read_ahead_bytes_) {
    batch.are_whole = true;
    batch.files = {{.path = path, .bytes = known->size_bytes()}};
    AddNeighbours(path, &batch.files);
  } else {
    batch.files = {{.path = path,
                    .offset = offset,
                    .bytes = std::max<uint64_t>(max_bytes, read_ahead_bytes_)}};
  }
  return batch;
}

absl::Status HostRunFiles::Watch(const Wanted& wanted, std::string_view identity) {
  if (wanted.offset == 0 || wanted.path != watched_path_) {
    watched_path_ = wanted.path;
    watched_identity_ = identity;
  }
  if (identity == watched_identity_) return absl::OkStatus();
  return ErrorOf(kReplaced, "", wanted.path);
}

absl::StatusOr<HostRunFiles::Part> HostRunFiles::TakePart(const Wanted& wanted, bool is_whole,
                                                          const std::string& mark,
                                                          std::string_view* rest) {
  const auto bytes = Cut(mark, rest);
  const auto code = NumberIn<int>(Cut(" ", rest));
  const auto words = Cut(std::string_view("\0", 1), rest);
  if (!bytes.has_value() || !code.has_value() || !words.has_value()) return Malformed();
  Part part = {.status = absl::OkStatus(), .offset = wanted.offset, .bytes = std::string(*bytes)};
  part.is_last = is_whole || bytes->size() < wanted.bytes;
  if (*code != 0) part.status = ErrorOf(*code, *words, wanted.path);
  if (*code == 0 && !is_whole) part.status = Watch(wanted, *words);
  return part;
}

HostRunFiles::Answer HostRunFiles::Fetch(Batch batch) const {
  const std::string nonce = hosts::NewNonce();
  std::vector<std::string> words = {nonce};
  size_t max_bytes = 0;
  for (const Wanted& wanted : batch.files) {
    if (batch.are_whole) words.push_back(NameOf(wanted.path));
    words.push_back(std::to_string(wanted.offset));
    words.push_back(std::to_string(wanted.bytes));
    max_bytes += wanted.bytes + kFrameBytes;
  }
  const auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<std::string> content =
      Ask("read", batch.files.front().path, std::move(words), max_bytes);
  return {.batch = std::move(batch),
          .mark = fmt::format("\n{} ", nonce),
          .content = std::move(content),
          .time = std::chrono::steady_clock::now() - begin};
}

HostRunFiles::Answer HostRunFiles::TakeAnswer(Batch batch) {
  if (coming_.valid()) {
    Answer answer = coming_.get();
    const Wanted& has = answer.batch.files.front();
    const Wanted& wants = batch.files.front();
    if (has.path == wants.path && has.offset == wants.offset) return answer;
  }
  return Fetch(std::move(batch));
}

absl::Status HostRunFiles::ReadAhead(Batch batch) {
  ahead_.clear();
  const Answer answer = TakeAnswer(std::move(batch));
  if (!answer.content.ok()) return answer.content.status();
  Pace(answer.content->size(), answer.time);
  std::string_view rest = *answer.content;
  for (const Wanted& wanted : answer.batch.files) {
    absl::StatusOr<Part> part = TakePart(wanted, answer.batch.are_whole, answer.mark, &rest);
    if (!part.ok()) return part.status();
    FetchWhatFollows(wanted, *part);
    ahead_[wanted.path] = *std::move(part);
  }
  return absl::OkStatus();
}

void HostRunFiles::FetchWhatFollows(const Wanted& wanted, const Part& part) {
  if (!part.status.ok() || part.is_last) return;
  const v1::FileTreeEntry* known = Known(wanted.path);
  uint64_t size = wanted.path == looked_at_ ? looked_at_bytes_ : 0;
  if (known != nullptr) size = known->size_bytes();
  const uint64_t end = wanted.offset + part.bytes.size();
  if (end >= size) return;
  coming_ = std::async(std::launch::async,
                       [this, next = WhatToRead(wanted.path, end, 0)] { return Fetch(next); });
}

void HostRunFiles::Pace(size_t bytes, std::chrono::steady_clock::duration time) {
  // A short answer tells nothing of how quick the line is.
  if (time < kQuick && bytes >= read_ahead_bytes_ / 2)
    read_ahead_bytes_ = std::min(read_ahead_bytes_ * 2, kMaxReadAheadBytes);
  if (time > kSlow) read_ahead_bytes_ = std::max(read_ahead_bytes_ / 2, kMinReadAheadBytes);
}

absl::StatusOr<std::string> HostRunFiles::Read(const std::string& path, uint64_t offset,
                                               size_t max_bytes) {
  auto part = ahead_.find(path);
  if (part == ahead_.end() || !part->second.Covers(offset)) {
    if (absl::Status s = ReadAhead(WhatToRead(path, offset, max_bytes)); !s.ok()) return s;
    part = ahead_.find(path);
  }
  const Part& found = part->second;
  if (!found.status.ok()) {
    const absl::Status error = found.status;
    ahead_.erase(part);
    return error;
  }
  const size_t from = std::min<size_t>(offset - found.offset, found.bytes.size());
  return found.bytes.substr(from, max_bytes);
}

}  // namespace

std::unique_ptr<RunFiles> MakeHostRunFiles(std::unique_ptr<hosts::Host> host, RunPlace place) {
  return std::make_unique<HostRunFiles>(std::move(host), std::move(place));
}

std::unique_ptr<RunFiles> MakeHostResults(std::unique_ptr<hosts::Host> host, std::string host_title,
                                          const std::string& directory) {
  SplitPath split = SplitOf(directory);
  return MakeHostRunFiles(std::move(host), {.host_title = std::move(host_title),
                                            .root = std::move(split.parent),
                                            .directory = std::move(split.name),
                                            .gone = fmt::format("there is no {}", directory)});
}

}  // namespace muster::agents
