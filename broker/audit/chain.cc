#include "broker/audit/chain.h"

#include <fmt/format.h>

#include <charconv>

#include "absl/strings/escaping.h"
#include "contract/text.h"
#include "digest/sha256.h"

namespace muster::audit {
namespace {

void AddField(std::string_view text, std::string* out) {
  const auto size = static_cast<uint32_t>(text.size());
  for (int shift = 24; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>((size >> shift) & 0xff));
  }
  out->append(text);
}

}  // namespace

std::string HashOf(std::string_view previous, const Record& record) {
  std::string bytes(previous);
  AddField(fmt::format("{}", record.seq), &bytes);
  AddField(fmt::format("{}", record.micros), &bytes);
  for (const std::string* field : {&record.user, &record.role, &record.credential, &record.origin,
                                   &record.action, &record.jobs, &record.target, &record.result}) {
    AddField(*field, &bytes);
  }
  AddField(fmt::format("{}", record.left_out), &bytes);
  Sha256 digest;
  digest.Add(bytes);
  return digest.FinishBytes();
}

std::string RetentionTarget(const Removed& removed) {
  return fmt::format("through={} hash={}", removed.seq, ToHex(removed.hash));
}

Removed ReadRetentionTarget(std::string_view target) {
  constexpr std::string_view kThrough = "through=";
  constexpr std::string_view kHash = " hash=";
  if (!target.starts_with(kThrough)) return {};
  target.remove_prefix(kThrough.size());
  uint64_t seq = 0;
  const auto [stop, error] = std::from_chars(target.data(), target.data() + target.size(), seq);
  target.remove_prefix(static_cast<size_t>(stop - target.data()));
  if (error != std::errc() || !target.starts_with(kHash)) return {};
  target.remove_prefix(kHash.size());
  if (target.size() != 2 * kHashBytes ||
      target.find_first_not_of("0123456789abcdef") != target.npos) {
    return {};
  }
  return {.seq = seq, .hash = absl::HexStringToBytes(ToAbsl(target))};
}

std::string ToHex(std::string_view bytes) { return absl::BytesToHexString(ToAbsl(bytes)); }

}  // namespace muster::audit
