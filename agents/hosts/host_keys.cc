#include "agents/hosts/host_keys.h"

#include <fnmatch.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "agents/hosts/local_host.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

constexpr size_t kMaxKnownHostsBytes = 16 << 20;
constexpr std::string_view kFingerprintPrefix = "SHA256:";

std::string Decode(std::string_view base64) {
  std::string bytes;
  if (!absl::Base64Unescape({base64.data(), base64.size()}, &bytes)) return {};
  return bytes;
}

std::string_view NextWord(std::string_view* line) {
  const size_t begin = std::min(line->find_first_not_of(" \t\r"), line->size());
  line->remove_prefix(begin);
  const size_t end = std::min(line->find_first_of(" \t\r"), line->size());
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(end);
  return word;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Returns the name that known_hosts has for a host.
std::string NameOf(const LoginHost& host) {
  const std::string name = Lower(host.name);
  return host.port == 22 ? name : fmt::format("[{}]:{}", name, host.port);
}

// The entry is "|1|SALT|HASH": HMAC-SHA1 hides the name.
bool MatchesHash(std::string_view pattern, const std::string& name) {
  pattern.remove_prefix(3);
  const size_t bar = pattern.find('|');
  if (bar == std::string_view::npos) return false;
  const std::string salt = Decode(pattern.substr(0, bar));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned length = 0;
  if (HMAC(EVP_sha1(), salt.data(), static_cast<int>(salt.size()),
           reinterpret_cast<const unsigned char*>(name.data()), name.size(), digest.data(),
           &length) == nullptr) {
    return false;
  }
  const std::string_view made(reinterpret_cast<const char*>(digest.data()), length);
  return Decode(pattern.substr(bar + 1)) == made;
}

// '[' has no meaning of its own in known_hosts, only '*' and '?' have.
bool MatchesGlob(std::string_view pattern, const std::string& name) {
  std::string escaped;
  for (const char c : pattern) {
    if (c == '[' || c == ']' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return fnmatch(Lower(escaped).c_str(), name.c_str(), 0) == 0;
}

std::string KeyscanLine(const LoginHost& host, std::string_view type, std::string_view file) {
  std::string name(type);
  if (name.starts_with("ssh-")) name = name.substr(4);
  if (name.starts_with("ecdsa-")) name = "ecdsa";
  return fmt::format("ssh-keyscan -t {} -p {} {} >> {}", name, host.port, host.name,
                     file.empty() ? "KNOWN_HOSTS" : file);
}

}  // namespace

std::string Fingerprint(std::string_view key) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  std::string text =
      absl::Base64Escape({reinterpret_cast<const char*>(digest.data()), digest.size()});
  while (text.ends_with('=')) text.pop_back();
  return std::string(kFingerprintPrefix) + text;
}

std::string KeyType(std::string_view key) {
  if (key.size() < 4) return {};
  size_t length = 0;
  for (int i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(key[i]);
  if (length > key.size() - 4) return {};
  return std::string(key.substr(4, length));
}

absl::StatusOr<HostKeys> HostKeys::Load(const SshConfig& config) {
  std::string text;
  if (!config.known_hosts_file.empty()) {
    absl::StatusOr<std::string> read =
        LocalHost().ReadFile(config.known_hosts_file, kMaxKnownHostsBytes);
    if (!read.ok()) {
      const absl::string_view message = read.status().message();
      return absl::FailedPreconditionError(
          fmt::format("the known hosts cannot be read: {}; write the file with ssh-keyscan and "
                      "compare its keys with those that the cluster's operator publishes",
                      std::string(message.data(), message.size())));
    }
    text = *std::move(read);
  }
  return Parse(text, config.known_hosts_file, config.host_keys);
}

absl::StatusOr<HostKeys> HostKeys::Parse(std::string_view known_hosts, std::string_view file,
                                         const std::vector<std::string>& pinned) {
  HostKeys keys;
  keys.file_ = file;
  for (int line = 1; !known_hosts.empty(); ++line) {
    const size_t end = std::min(known_hosts.find('\n'), known_hosts.size());
    keys.AddLine(known_hosts.substr(0, end), fmt::format("{}:{}", file, line));
    known_hosts.remove_prefix(std::min(end + 1, known_hosts.size()));
  }
  for (const std::string& text : pinned) {
    if (absl::Status status = keys.AddPinned(text); !status.ok()) return status;
  }
  return keys;
}

void HostKeys::AddLine(std::string_view line, std::string where) {
  Entry entry;
  std::string_view word = NextWord(&line);
  if (word.starts_with('@')) {
    if (word != "@revoked") return;
    entry.is_revoked = true;
    word = NextWord(&line);
  }
  if (word.empty() || word.starts_with('#')) return;
  entry.patterns = word;
  const std::string_view type = NextWord(&line);
  entry.key = Decode(NextWord(&line));
  if (entry.key.empty() || KeyType(entry.key) != type) return;
  entry.fingerprint = Fingerprint(entry.key);
  entry.where = std::move(where);
  entries_.push_back(std::move(entry));
}

absl::Status HostKeys::AddPinned(std::string_view text) {
  Entry entry;
  entry.where = "ssh_host_keys";
  std::string_view rest = text;
  const std::string_view word = NextWord(&rest);
  if (word.starts_with(kFingerprintPrefix)) {
    entry.fingerprint = word;
  } else {
    entry.key = Decode(NextWord(&rest));
    entry.fingerprint = Fingerprint(entry.key);
  }
  const bool is_good = word.starts_with(kFingerprintPrefix)
                           ? Decode(word.substr(kFingerprintPrefix.size())).size() == 32
                           : !entry.key.empty() && KeyType(entry.key) == word;
  if (!is_good) {
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is no host key; write \"ssh-ed25519 AAAA...\" or \"SHA256:...\" as ssh-keygen -l "
        "prints it",
        text));
  }
  entries_.push_back(std::move(entry));
  return absl::OkStatus();
}

bool HostKeys::Matches(const Entry& entry, const LoginHost& host) {
  if (entry.patterns.empty()) return true;
  const std::string name = NameOf(host);
  bool matches = false;
  std::string_view patterns = entry.patterns;
  while (!patterns.empty()) {
    const size_t comma = std::min(patterns.find(','), patterns.size());
    std::string_view pattern = patterns.substr(0, comma);
    patterns.remove_prefix(std::min(comma + 1, patterns.size()));
    const bool is_negated = pattern.starts_with('!');
    if (is_negated) pattern.remove_prefix(1);
    const bool hit =
        pattern.starts_with("|1|") ? MatchesHash(pattern, name) : MatchesGlob(pattern, name);
    if (hit && is_negated) return false;
    matches = matches || hit;
  }
  return matches;
}

std::vector<std::string> HostKeys::TypesFor(const LoginHost& host) const {
  std::vector<std::string> types;
  for (const Entry& entry : entries_) {
    if (entry.is_revoked || entry.key.empty() || !Matches(entry, host)) continue;
    std::string type = KeyType(entry.key);
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  return types;
}

absl::Status HostKeys::Check(const LoginHost& host, std::string_view key) const {
  const std::string fingerprint = Fingerprint(key);
  const std::string type = KeyType(key);
  std::string known;
  bool is_known = false;
  for (const Entry& entry : entries_) {
    if (!Matches(entry, host)) continue;
    const bool is_same =
        entry.fingerprint == fingerprint && (entry.key.empty() || entry.key == key);
    if (entry.is_revoked && is_same) {
      return absl::FailedPreconditionError(
          fmt::format("the key that {} shows ({} {}) is marked as revoked in {}; ask the cluster's "
                      "operator for the new one",
                      host.ToString(), type, fingerprint, entry.where));
    }
    if (entry.is_revoked) continue;
    is_known = is_known || is_same;
    const std::string its_type = entry.key.empty() ? "" : KeyType(entry.key) + " ";
    known += fmt::format("{}{}{} ({})", known.empty() ? "" : ", ", its_type, entry.fingerprint,
                         entry.where);
  }
  if (is_known) return absl::OkStatus();
  const std::string add = KeyscanLine(host, type, file_);
  if (known.empty()) {
    return absl::FailedPreconditionError(fmt::format(
        "the host key of {} is not known; it shows {} {}. If the cluster's operator confirms that "
        "fingerprint, add the key: {}",
        host.ToString(), type, fingerprint, add));
  }
  return absl::FailedPreconditionError(fmt::format(
      "the host key of {} has changed: it shows {} {}, known is {}. Somebody may be listening in. "
      "If the cluster's operator confirms the new fingerprint, replace the key: ssh-keygen -R '{}' "
      "-f {}; {}",
      host.ToString(), type, fingerprint, known, NameOf(host),
      file_.empty() ? "KNOWN_HOSTS" : file_, add));
}

}  // namespace muster::hosts
