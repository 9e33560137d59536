#include "contract/image.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/path_bytes.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr std::string_view kDockerScheme = "docker://";
constexpr std::string_view kDockerHub = "docker.io";
// Docker Hub's images are on this host; Enroot goes there by itself for an image without a
// registry.
constexpr std::string_view kDockerHubHost = "registry-1.docker.io";
constexpr std::array<std::string_view, 3> kDockerHubNames = {kDockerHub, "index.docker.io",
                                                             kDockerHubHost};
constexpr std::array<std::string_view, 3> kSquashSuffixes = {".sqsh", ".sqfs", ".squashfs"};
constexpr size_t kMaxTagBytes = 128;  // the distribution specification's
constexpr size_t kMaxUserBytes = 128;
constexpr uint32_t kMaxPort = 65535;
constexpr std::string_view kExample = "\"nvcr.io/nvidia/pytorch:24.01-py3\"";

absl::Status BadImage(std::string_view text, std::string_view problem) {
  return BadField("image", fmt::format("{} {}", Quoted(text), problem));
}

bool IsLowerAlnum(char c) { return IsLowerLetter(c) || IsDigit(c); }

bool IsTagCharacter(char c) {
  return IsLetter(c) || IsDigit(c) || c == '_' || c == '.' || c == '-';
}

bool IsTag(std::string_view tag) {
  return !tag.empty() && tag.size() <= kMaxTagBytes && tag.front() != '.' && tag.front() != '-' &&
         std::all_of(tag.begin(), tag.end(), IsTagCharacter);
}

bool IsDigest(std::string_view digest) {
  const bool is_256 = digest.starts_with("sha256:") && digest.size() == 7 + 64;
  const bool is_512 = digest.starts_with("sha512:") && digest.size() == 7 + 128;
  if (!is_256 && !is_512) return false;
  return std::all_of(digest.begin() + 7, digest.end(),
                     [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); });
}

bool IsUser(std::string_view user) {
  const auto is_good = [](char c) { return IsTagCharacter(c) || c == '$' || c == '+'; };
  return !user.empty() && user.size() <= kMaxUserBytes &&
         std::all_of(user.begin(), user.end(), is_good);
}

// Tells whether it is lower-case letters and digits, with '.', '-', "__" or '_' between two of
// them.
bool IsRepositoryPart(std::string_view part) {
  if (part.empty() || !IsLowerAlnum(part.front()) || !IsLowerAlnum(part.back())) return false;
  for (size_t i = 1; i < part.size(); ++i) {
    const char c = part[i];
    if (IsLowerAlnum(c)) continue;
    if (c != '.' && c != '_' && c != '-') return false;
    const char before = part[i - 1];
    const bool second_underscore = c == '_' && before == '_' && part[i - 2] != '_';
    if (!IsLowerAlnum(before) && !(c == '-' && before == '-') && !second_underscore) return false;
  }
  return true;
}

bool IsRepository(std::string_view repository) {
  while (true) {
    const size_t end = repository.find('/');
    if (!IsRepositoryPart(repository.substr(0, end))) return false;
    if (end == repository.npos) return true;
    repository.remove_prefix(end + 1);
  }
}

bool IsPort(std::string_view port) {
  if (port.empty() || port.size() > 5 || port.front() == '0') return false;
  uint32_t number = 0;
  for (char c : port) {
    if (!IsDigit(c)) return false;
    number = number * 10 + static_cast<uint32_t>(c - '0');
  }
  return number <= kMaxPort;
}

// A lower-case host name or IPv4 address, and perhaps a port.
bool IsRegistry(std::string_view registry) {
  const size_t colon = registry.find(':');
  if (colon != registry.npos && !IsPort(registry.substr(colon + 1))) return false;
  std::string_view host = registry.substr(0, colon);
  while (true) {
    const size_t end = host.find('.');
    const std::string_view label = host.substr(0, end);
    const bool is_good =
        !label.empty() && label.front() != '-' && label.back() != '-' &&
        std::all_of(label.begin(), label.end(), [](char c) { return IsLowerAlnum(c) || c == '-'; });
    if (!is_good) return false;
    if (end == host.npos) return true;
    host.remove_prefix(end + 1);
  }
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

absl::StatusOr<Image> ParseFile(std::string_view text) {
  const bool is_squash = std::any_of(kSquashSuffixes.begin(), kSquashSuffixes.end(),
                                     [&](auto suffix) { return text.ends_with(suffix); });
  if (!is_squash) {
    return BadImage(text,
                    fmt::format("is a path, but not one of a squashfs file; use one that ends "
                                "with .sqsh, or an image of a registry such as {}",
                                kExample));
  }
  if (text.size() > kMaxPathBytes || HasControlCharacter(text) || !IsUtf8(text)) {
    return BadImage(text, fmt::format("is not a usable path; use at most {} bytes of UTF-8 without "
                                      "control characters",
                                      kMaxPathBytes));
  }
  Image image;
  image.path = text;
  return image;
}

// The parts of the text, before anything is checked.
struct Parts {
  std::string_view user, registry, repository, tag, digest;
  bool has_user = false, has_registry = false, has_tag = false, has_digest = false;
};

// The text behind '@' may as well be the image of a user: "me@ubuntu:22.04".
bool LooksLikeDigest(std::string_view text) {
  return text.starts_with("sha") && text.size() > 3 && IsDigit(text[3]);
}

Parts TakeApart(std::string_view text) {
  Parts parts;
  const size_t hash = text.find('#');
  parts.has_registry = hash != text.npos;
  std::string_view name = parts.has_registry ? text.substr(hash + 1) : text;
  if (const size_t at = name.rfind('@'); at != name.npos && LooksLikeDigest(name.substr(at + 1))) {
    parts.digest = name.substr(at + 1);
    parts.has_digest = true;
    name = name.substr(0, at);
  }
  // A user stands before the registry, or before the image if there is no '#'.
  std::string_view& owner = parts.has_registry ? parts.registry : name;
  if (parts.has_registry) parts.registry = text.substr(0, hash);
  if (const size_t at = owner.find('@'); at != owner.npos) {
    parts.user = owner.substr(0, at);
    parts.has_user = true;
    owner = owner.substr(at + 1);
  }
  if (const size_t slash = name.find('/'); !parts.has_registry && slash != name.npos) {
    const std::string_view first = name.substr(0, slash);
    if (first.find_first_of(".:") != first.npos || first == "localhost") {
      parts.registry = first;
      parts.has_registry = true;
      name = name.substr(slash + 1);
    }
  }
  if (const size_t colon = name.rfind(':'); colon != name.npos) {
    parts.tag = name.substr(colon + 1);
    parts.has_tag = true;
    name = name.substr(0, colon);
  }
  parts.repository = name;
  return parts;
}

absl::Status CheckParts(std::string_view text, const Parts& parts, std::string_view registry) {
  if (parts.has_user && !IsUser(parts.user)) {
    return BadImage(text,
                    fmt::format("names the user {}; use letters, digits and ._-$+ only, and keep "
                                "passwords in the cluster's credentials",
                                Quoted(parts.user)));
  }
  if (parts.has_registry && !IsRegistry(registry)) {
    return BadImage(text,
                    fmt::format("names the registry {}, which is no host name with or without a "
                                "port; write it like {}",
                                Quoted(parts.registry), kExample));
  }
  if (!IsRepository(parts.repository)) {
    const bool has_capital = IsRepository(LowerCase(parts.repository));
    return BadImage(
        text, fmt::format("names the image {}; {}", Quoted(parts.repository),
                          has_capital ? "write it in lower case, registries know no other"
                                      : fmt::format("its parts between '/' may have "
                                                    "lower-case letters, digits and, between "
                                                    "them, '.', '-' and '_'; write it like {}",
                                                    kExample)));
  }
  if (parts.has_tag && !IsTag(parts.tag)) {
    return BadImage(text,
                    fmt::format("has the tag {}; use 1 to {} letters, digits, '_', '.' and '-', "
                                "beginning with a letter, digit or '_'",
                                Quoted(parts.tag), kMaxTagBytes));
  }
  if (parts.has_digest && !IsDigest(parts.digest)) {
    return BadImage(text,
                    fmt::format("has the digest {}; use \"sha256:\" and 64 lower-case hexadecimal "
                                "digits",
                                Quoted(parts.digest)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Image> ParseReference(std::string_view text, std::string_view reference) {
  const Parts parts = TakeApart(reference);
  const std::string registry = LowerCase(parts.registry);
  if (absl::Status good = CheckParts(text, parts, registry); !good.ok()) return good;
  Image image;
  image.user = parts.user;
  const bool is_hub =
      !parts.has_registry ||
      std::find(kDockerHubNames.begin(), kDockerHubNames.end(), registry) != kDockerHubNames.end();
  image.registry = is_hub ? kDockerHub : registry;
  image.repository = parts.repository;
  if (is_hub && image.repository.find('/') == std::string::npos) {
    image.repository.insert(0, "library/");
  }
  image.digest = parts.digest;
  if (!parts.has_digest) image.tag = parts.has_tag ? parts.tag : "latest";
  if (const size_t bytes = OciReference(image).size(); bytes > kMaxImageReferenceBytes) {
    return BadImage(
        text, fmt::format("is {} bytes long; use at most {}", bytes, kMaxImageReferenceBytes));
  }
  return image;
}

// Returns repository and tag or digest.
std::string ImageName(const Image& image) {
  return image.digest.empty() ? fmt::format("{}:{}", image.repository, image.tag)
                              : fmt::format("{}@{}", image.repository, image.digest);
}

}  // namespace

absl::StatusOr<Image> ParseImage(std::string_view text) {
  if (text.empty())
    return BadImage(text, fmt::format("names no image; write it like {}", kExample));
  if (text.front() == '/') return ParseFile(text);
  if (text.front() == '.') {
    return BadImage(text,
                    "is a relative path, and no one can tell relative to what on the cluster; "
                    "use an absolute one");
  }
  std::string_view reference = text;
  if (const size_t end = text.find("://"); end != text.npos) {
    const std::string scheme = LowerCase(text.substr(0, end));
    if (scheme == "dockerd" || scheme == "podman") {
      return BadImage(text,
                      "is an image of one machine's own daemon, which other machines cannot reach; "
                      "push it to a registry, or convert it with `enroot import` and give the "
                      ".sqsh file's path");
    }
    if (scheme != "docker") {
      return BadImage(text, fmt::format("has the scheme {}; use {}, or leave it out",
                                        Quoted(scheme), kDockerScheme));
    }
    reference.remove_prefix(kDockerScheme.size());
  }
  return ParseReference(text, reference);
}

std::string PyxisImage(const Image& image) {
  if (image.is_file()) return image.path;
  const std::string user = image.user.empty() ? "" : image.user + "@";
  const std::string_view host = image.registry == kDockerHub ? kDockerHubHost : image.registry;
  return fmt::format("{}{}#{}", user, host, ImageName(image));
}

std::string EnrootUri(const Image& image) {
  return image.is_file() ? "" : fmt::format("{}{}", kDockerScheme, PyxisImage(image));
}

std::string OciReference(const Image& image) {
  return image.is_file() ? "" : fmt::format("{}/{}", image.registry, ImageName(image));
}

std::string SquashFileName(const Image& image) {
  if (image.is_file()) return {};
  // The characters put in are in no reference, so each name comes from one reference only.
  std::string name = OciReference(image);
  std::replace(name.begin(), name.end(), '/', '+');
  std::replace(name.begin(), name.end(), ':', '=');
  return name + ".sqsh";
}

}  // namespace muster::contract
