#include "agents/machines/remote/launch_record.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agents/machines/file_status.h"
#include "agents/machines/record.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

constexpr char kAssignmentFile[] = "assignment";
constexpr char kPlacementFile[] = "placement";
constexpr char kBegunFile[] = "begun";
constexpr char kRefusedFile[] = "refused";
// A job spec is at most 1 MiB on the wire.
constexpr size_t kMaxAssignmentBytes = 4 << 20;
// A node with all its GPUs takes a few hundred bytes.
constexpr size_t kMaxPlacementBytes = 1 << 20;
// The assignment holds the user's variables.
constexpr mode_t kRecordMode = 0600;

absl::Status Write(const std::string& path, const std::string& content) {
  return StoreFile(path, content, kRecordMode);
}

// Empty if there is no such file.
absl::StatusOr<std::string> ReadRecordFile(const std::string& path, size_t max_bytes) {
  absl::StatusOr<std::optional<std::string>> content = LoadFile(path, max_bytes);
  if (!content.ok()) return content.status();
  return std::move(*content).value_or("");
}

// Reads "ORDER SIZE\n" and the message; what was cut by a power failure counts as absent.
void DecodeAssignment(const std::string& content, LaunchFiles* files) {
  const size_t line_end = content.find('\n');
  const std::vector<std::string> words =
      absl::StrSplit(content.substr(0, line_end), absl::MaxSplits(' ', 1));
  uint64_t size = 0;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &files->order) ||
      !absl::SimpleAtoi(words[1], &size) || content.size() - line_end - 1 != size) {
    return;
  }
  auto assignment = std::make_shared<agent::v1::Assignment>();
  if (assignment->ParseFromString(content.substr(line_end + 1)))
    files->assignment = std::move(assignment);
}

std::string NodeText(const NodeAllocation& node) {
  std::string text = fmt::format("{} {}", node.cores, node.memory_bytes);
  for (const auto& [index, millis] : node.gpus) text += fmt::format(" {}:{}", index, millis);
  return text;
}

std::optional<NodeAllocation> ParseNode(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  NodeAllocation node;
  if (words.size() < 2 || !absl::SimpleAtoi(words[0], &node.cores) ||
      !absl::SimpleAtoi(words[1], &node.memory_bytes)) {
    return std::nullopt;
  }
  for (size_t i = 2; i < words.size(); ++i) {
    const std::vector<std::string> parts = absl::StrSplit(words[i], ':');
    uint32_t index = 0;
    uint32_t millis = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &index) ||
        !absl::SimpleAtoi(parts[1], &millis)) {
      return std::nullopt;
    }
    node.gpus[index] = millis;
  }
  return node;
}

std::vector<PlacedRank> DecodePlacement(const std::string& content) {
  const std::optional<Record> record = Record::Decode(content);
  if (!record.has_value()) return {};
  const std::vector<std::string> hosts = record->All("host");
  const std::vector<std::string> directories = record->All("directory");
  const std::vector<std::string> nodes = record->All("node");
  const std::vector<std::string> devices = record->All("devices");
  std::vector<PlacedRank> placement;
  for (size_t i = 0; i < hosts.size() && i < directories.size() && i < nodes.size(); ++i) {
    std::optional<NodeAllocation> node = ParseNode(nodes[i]);
    if (!node.has_value()) return {};
    placement.push_back({hosts[i], directories[i], *std::move(node),
                         i < devices.size() ? devices[i] : std::string()});
  }
  return placement;
}

std::set<size_t> DecodeBegun(const std::string& content) {
  std::set<size_t> ranks;
  const std::optional<Record> record = Record::Decode(content);
  if (!record.has_value()) return ranks;
  for (const std::string& text : record->All("rank")) {
    size_t rank = 0;
    if (absl::SimpleAtoi(text, &rank)) ranks.insert(rank);
  }
  return ranks;
}

std::map<size_t, v1::Failure> DecodeRefused(const std::string& content) {
  std::map<size_t, v1::Failure> refused;
  const std::optional<Record> record = Record::Decode(content);
  if (!record.has_value()) return refused;
  const std::vector<std::string> ranks = record->All("rank");
  const std::vector<std::string> failures = record->All("failure");
  for (size_t i = 0; i < ranks.size() && i < failures.size(); ++i) {
    size_t rank = 0;
    v1::Failure failure;
    std::string bytes;
    if (absl::SimpleAtoi(ranks[i], &rank) && absl::Base64Unescape(failures[i], &bytes) &&
        failure.ParseFromString(bytes)) {
      refused[rank] = std::move(failure);
    }
  }
  return refused;
}

absl::Time WrittenAt(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? absl::TimeFromTimespec(info.st_mtim)
                                        : absl::InfinitePast();
}

}  // namespace

absl::Status CheckDevices(const PlacedRank& rank, const Capacity& capacity) {
  const std::vector<std::string> given = absl::StrSplit(rank.devices, ',', absl::SkipEmpty());
  std::vector<std::string> missing;
  size_t i = 0;
  for (const auto& [index, millis] : rank.node.gpus) {
    const auto found =
        std::find_if(capacity.gpus.begin(), capacity.gpus.end(),
                     [wanted = index](const Gpu& gpu) { return gpu.index == wanted; });
    const std::string name = i < given.size() ? given[i] : "";
    ++i;
    if (found != capacity.gpus.end() && (name.empty() || found->name == name)) continue;
    std::string what = fmt::format("GPU {}", index);
    if (!name.empty()) what += fmt::format(" ({})", name);
    if (found != capacity.gpus.end()) what += fmt::format(", where now is {}", found->name);
    missing.push_back(std::move(what));
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("host {} has no longer what the run was given there: {}", rank.host,
                  fmt::join(missing, "; ")));
}

absl::StatusOr<LaunchFiles> LaunchRecord::Read() const {
  LaunchFiles files;
  const absl::StatusOr<std::string> assignment =
      ReadRecordFile(PathOf(kAssignmentFile), kMaxAssignmentBytes);
  if (!assignment.ok()) return assignment.status();
  const absl::StatusOr<std::string> placement =
      ReadRecordFile(PathOf(kPlacementFile), kMaxPlacementBytes);
  if (!placement.ok()) return placement.status();
  const absl::StatusOr<std::string> begun = ReadRecordFile(PathOf(kBegunFile), kMaxPlacementBytes);
  if (!begun.ok()) return begun.status();
  const absl::StatusOr<std::string> refused =
      ReadRecordFile(PathOf(kRefusedFile), kMaxPlacementBytes);
  if (!refused.ok()) return refused.status();
  DecodeAssignment(*assignment, &files);
  files.placement = DecodePlacement(*placement);
  files.begun = DecodeBegun(*begun);
  files.refused = DecodeRefused(*refused);
  files.refused_at = WrittenAt(PathOf(kRefusedFile));
  files.last_word = std::max(WrittenAt(PathOf(kPlacementFile)), WrittenAt(PathOf(kBegunFile)));
  return files;
}

absl::Status LaunchRecord::Create(const agent::v1::Assignment& assignment, uint64_t order) const {
  const bool made = mkdir(path_.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return FileError(errno, "make the directory", path_);
  const std::string bytes = assignment.SerializeAsString();
  absl::Status written =
      Write(PathOf(kAssignmentFile), fmt::format("{} {}\n{}", order, bytes.size(), bytes));
  // Nothing may be left that a restart would take for a queued run.
  if (!written.ok()) unlink(PathOf(kAssignmentFile).c_str());
  if (!written.ok() && made) rmdir(path_.c_str());
  return written;
}

absl::Status LaunchRecord::Place(const std::vector<PlacedRank>& placement) const {
  Record record;
  for (const PlacedRank& rank : placement) {
    record.Add("host", rank.host);
    record.Add("directory", rank.directory);
    record.Add("node", NodeText(rank.node));
    record.Add("devices", rank.devices);
  }
  return Write(PathOf(kPlacementFile), record.Encode());
}

absl::Status LaunchRecord::Unplace() const {
  const std::string path = PathOf(kPlacementFile);
  return unlink(path.c_str()) == 0 ? absl::OkStatus() : FileError(errno, "remove", path);
}

absl::Status LaunchRecord::SetBegun(const std::set<size_t>& ranks) const {
  Record record;
  for (const size_t rank : ranks) record.Add("rank", static_cast<int64_t>(rank));
  return Write(PathOf(kBegunFile), record.Encode());
}

absl::Status LaunchRecord::SetRefused(const std::map<size_t, v1::Failure>& ranks) const {
  Record record;
  for (const auto& [rank, failure] : ranks) {
    record.Add("rank", static_cast<int64_t>(rank));
    record.Add("failure", absl::Base64Escape(failure.SerializeAsString()));
  }
  return Write(PathOf(kRefusedFile), record.Encode());
}

void LaunchRecord::RemoveBookkeeping() const {
  unlink(PathOf(kAssignmentFile).c_str());
  unlink(PathOf(kRefusedFile).c_str());
  unlink(PathOf(kBegunFile).c_str());
}

void LaunchRecord::Remove() const {
  RemoveBookkeeping();
  // The directory may also have the files of an agent that was killed while it wrote; nothing here
  // is a user's.
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace muster::machines
