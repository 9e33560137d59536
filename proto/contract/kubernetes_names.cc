#include "contract/kubernetes_names.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "contract/characters.h"
#include "contract/parts.h"

namespace muster::contract {
namespace {

constexpr size_t kMaxDnsLabelBytes = 63;
constexpr size_t kMaxDnsSubdomainBytes = 253;
constexpr size_t kMaxLabelBytes = 63;
constexpr std::array<std::string_view, 3> kReserved = {"muster.dev", "kubernetes.io", "k8s.io"};

bool IsAlphanumeric(char c) { return IsLetter(c) || IsDigit(c); }

}  // namespace

bool IsDnsLabel(std::string_view name) {
  const auto is_inner = [](char c) { return IsLowerLetter(c) || IsDigit(c) || c == '-'; };
  return !name.empty() && name.size() <= kMaxDnsLabelBytes && name.front() != '-' &&
         name.back() != '-' && std::all_of(name.begin(), name.end(), is_inner);
}

bool IsDnsSubdomain(std::string_view name) {
  if (name.size() > kMaxDnsSubdomainBytes) return false;
  const auto parts = Split(name, '.');
  return std::all_of(parts.begin(), parts.end(), IsDnsLabel);
}

bool IsLabelKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == key.npos) return !key.empty() && IsLabelValue(key);
  const std::string_view name = key.substr(slash + 1);
  return IsDnsSubdomain(key.substr(0, slash)) && !name.empty() && IsLabelValue(name);
}

bool IsLabelValue(std::string_view value) {
  if (value.empty()) return true;
  const auto is_inner = [](char c) {
    return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
  };
  return value.size() <= kMaxLabelBytes && IsAlphanumeric(value.front()) &&
         IsAlphanumeric(value.back()) && std::all_of(value.begin(), value.end(), is_inner);
}

bool IsReservedLabelKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == key.npos) return false;
  const std::string_view prefix = key.substr(0, slash);
  return std::any_of(kReserved.begin(), kReserved.end(), [&](std::string_view reserved) {
    if (!prefix.ends_with(reserved)) return false;
    if (prefix.size() == reserved.size()) return true;
    const char before = prefix[prefix.size() - reserved.size() - 1];
    return before == '.' || before == '-';  // kueue.x-k8s.io
  });
}

}  // namespace muster::contract
