#include "agents/hosts/ssh_key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "absl/strings/escaping.h"
#include "agents/hosts/fd.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

// RSA keys of 16384 bits take 13 kB.
constexpr size_t kMaxKeyBytes = 64 << 10;

absl::Status Unusable(std::string_view text) {
  return absl::FailedPreconditionError(std::string(text));
}

// OpenSSH's own form names the cipher at its beginning, the older one in a header.
bool HasPassphrase(std::string_view key) {
  if (key.find("ENCRYPTED") != std::string_view::npos) return true;
  const std::optional<std::string> bytes = OpensshKeyBytes(key);
  constexpr std::string_view kPlain("openssh-key-v1\0\0\0\0\4none", 23);
  return bytes.has_value() && !bytes->starts_with(kPlain);
}

}  // namespace

std::optional<std::string> OpensshKeyBytes(std::string_view key) {
  constexpr std::string_view kBegin = "-----BEGIN OPENSSH PRIVATE KEY-----";
  const size_t begin = key.find(kBegin);
  if (begin == std::string_view::npos) return std::nullopt;
  std::string base64;
  for (const char c : key.substr(begin + kBegin.size())) {
    if (c == '-') break;
    if (c != '\n' && c != '\r') base64 += c;
  }
  std::string bytes;
  if (!absl::Base64Unescape(base64, &bytes)) return std::nullopt;
  return bytes;
}

absl::StatusOr<std::string> ReadKeyFile(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (!fd.valid() || fstat(fd.get(), &info) != 0) {
    return Unusable(
        fmt::format("the SSH key \"{}\" cannot be read: {}; set ssh_key to a private "
                    "key's file that this user can read",
                    path, std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) return Unusable(fmt::format("\"{}\" is no key's file", path));
  if ((info.st_mode & 0077) != 0) {
    return Unusable(
        fmt::format("the SSH key \"{}\" has mode {:04o}, so that others can read it; "
                    "chmod 600 {}",
                    path, info.st_mode & 07777, path));
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return Unusable(
        fmt::format("the SSH key \"{}\" belongs to user {}, not to user {} that the "
                    "agent runs as; give the agent a key of its own",
                    path, info.st_uid, geteuid()));
  }
  std::string key(kMaxKeyBytes + 1, '\0');
  const ssize_t bytes = read(fd.get(), key.data(), key.size());
  if (bytes <= 0 || static_cast<size_t>(bytes) > kMaxKeyBytes) {
    return Unusable(fmt::format("\"{}\" is no private key: it has {} bytes", path, info.st_size));
  }
  key.resize(static_cast<size_t>(bytes));
  if (key.find("PRIVATE KEY-----") == std::string::npos) {
    return Unusable(
        fmt::format("\"{}\" is no private key; ssh_key names the file without .pub", path));
  }
  if (HasPassphrase(key)) {
    return Unusable(
        fmt::format("the SSH key \"{}\" is protected by a passphrase, and nobody is "
                    "asked for one; load it into ssh-agent, or make a key for the "
                    "agent: ssh-keygen -t ed25519 -N ''",
                    path));
  }
  return key;
}

}  // namespace muster::hosts
