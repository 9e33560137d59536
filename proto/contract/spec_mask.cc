#include "contract/spec_mask.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "contract/characters.h"
#include "contract/errors.h"
#include "fmt/format.h"
#include "google/protobuf/descriptor.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Wire types of protobuf, in the low three bits of a tag.
constexpr uint64_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;
constexpr int kTypeBits = 3;

// Takes a number from the front. False: there is none.
bool TakeVarint(std::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    *value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

void AddVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Takes the value behind a tag of that type from the front; `content`: that of kBytes.
bool TakeValue(uint64_t type, std::string_view* bytes, std::string_view* content) {
  uint64_t size = 0;
  switch (type) {
    case kVarint:
      return TakeVarint(bytes, &size);
    case kFixed64:
      size = 8;
      break;
    case kFixed32:
      size = 4;
      break;
    case kBytes:
      if (!TakeVarint(bytes, &size)) return false;
      break;
    default:
      return false;
  }
  if (size > bytes->size()) return false;
  *content = bytes->substr(0, size);
  bytes->remove_prefix(size);
  return true;
}

bool IsMapOfTexts(const FieldDescriptor& field) {
  return field.is_map() && field.message_type()->map_key()->type() == FieldDescriptor::TYPE_STRING;
}

// Returns the key of a map's entry. The key is the first field; protobuf writes it first, and
// leaves out an empty one.
std::string_view KeyOf(std::string_view entry) {
  constexpr uint64_t kKeyTag = (1U << kTypeBits) | kBytes;
  uint64_t tag = 0;
  std::string_view key;
  const bool is_key = TakeVarint(&entry, &tag) && tag == kKeyTag && TakeValue(kBytes, &entry, &key);
  return is_key ? key : std::string_view();
}

absl::Status BadPath(const std::string& path) {
  return BadField(
      "spec_mask",
      fmt::format("{} is no field of JobSpec; write paths such as \"nodes\", "
                  "\"slurm.partition\" or \"env.HOME\", none of which leads into a list",
                  Quoted(path)));
}

}  // namespace

absl::StatusOr<SpecMask> SpecMask::Parse(const google::protobuf::FieldMask& mask) {
  if (mask.paths_size() > kMaxMaskPaths) {
    return BadField("spec_mask",
                    fmt::format("has {} paths, the most is {}", mask.paths_size(), kMaxMaskPaths));
  }
  SpecMask parsed;
  for (const std::string& path : mask.paths()) {
    if (!parsed.Add(path)) return BadPath(path);
  }
  return parsed;
}

bool SpecMask::Add(std::string_view path) {
  const Descriptor* message = v1::JobSpec::descriptor();
  Node* node = &root_;  // null: a shorter path takes it whole
  for (std::string_view rest = path; message != nullptr;) {
    const std::string name(rest.substr(0, rest.find('.')));
    const FieldDescriptor* field = message->FindFieldByName(name);
    if (field == nullptr) return false;
    if (node != nullptr) {
      const auto [at, is_new] = node->fields.try_emplace(field->number());
      node = is_new || !at->second.IsWhole() ? &at->second : nullptr;
    }
    if (name.size() == rest.size()) {
      if (node != nullptr) *node = {};
      return true;
    }
    rest.remove_prefix(name.size() + 1);
    if (IsMapOfTexts(*field)) {
      if (node != nullptr) node->keys.emplace(rest);
      return !rest.empty();
    }
    message = field->is_repeated() ? nullptr : field->message_type();
  }
  return false;
}

bool SpecMask::TakesWhole(int field) const {
  const auto found = root_.fields.find(field);
  return found != root_.fields.end() && found->second.IsWhole();
}

bool SpecMask::CutMessage(std::string_view bytes, const Node& node, std::string* out) {
  while (!bytes.empty()) {
    const std::string_view whole = bytes;
    uint64_t tag = 0;
    std::string_view content;
    if (!TakeVarint(&bytes, &tag) || !TakeValue(tag & ((1U << kTypeBits) - 1), &bytes, &content))
      return false;
    const auto field = node.fields.find(static_cast<int>(tag >> kTypeBits));
    if (field == node.fields.end()) continue;
    const Node& taken = field->second;
    if (taken.IsWhole() || (!taken.keys.empty() && taken.keys.contains(KeyOf(content)))) {
      out->append(whole.substr(0, whole.size() - bytes.size()));
      continue;
    }
    if (taken.fields.empty()) continue;
    std::string part;
    if (!CutMessage(content, taken, &part)) return false;
    AddVarint(tag, out);
    AddVarint(part.size(), out);
    out->append(part);
  }
  return true;
}

std::optional<std::string> SpecMask::Cut(std::string_view spec) const {
  std::string part;
  if (!CutMessage(spec, root_, &part)) return std::nullopt;
  return part;
}

}  // namespace muster::contract
