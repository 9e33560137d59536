#include "contract/storage_uri.h"

#include <algorithm>
#include <vector>

#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/path_bytes.h"
#include "contract/path_within.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

using Kind = StorageUri::Kind;

constexpr size_t kMaxRootNameBytes = 63;
// TAO's clients write it where they know no bucket: "slurm://None/lustre/data".
constexpr std::string_view kNoBucket = "None/";

absl::Status BadUri(std::string_view field, std::string_view text, std::string_view problem) {
  return BadField(field, fmt::format("{} {}", Quoted(text), problem));
}

// Makes the path without empty parts and "."; false if a part is "..".
bool Normalize(std::string_view path, std::string* normal) {
  const bool is_absolute = path.starts_with('/');
  normal->clear();
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part == "..") return false;
    if (part.empty() || part == ".") continue;
    if (is_absolute || !normal->empty()) *normal += '/';
    *normal += part;
  }
  if (normal->empty()) *normal = is_absolute ? "/" : ".";
  return true;
}

std::string NormalRoot(const std::string& root) {
  std::string normal;
  return Normalize(root, &normal) ? normal : root;
}

bool IsInsideRoots(std::string_view path, const ClusterStorage& storage) {
  return std::any_of(storage.roots.begin(), storage.roots.end(),
                     [&](const auto& root) { return IsWithin(path, NormalRoot(root.second)); });
}

// Returns "lustre (/lustre), home (/home/ann)"
std::string ListRoots(const ClusterStorage& storage) {
  std::vector<std::string> shown;
  for (const auto& [name, path] : storage.roots)
    shown.push_back(fmt::format("{} ({})", name, path));
  return fmt::format("{}", fmt::join(shown, ", "));
}

// Returns the path of "slurm://NAME/rest", which is below the root NAME. If no root has that name,
// the text is an absolute path that lacks its first slash, as TAO writes it.
std::string SlurmPath(const std::string& path, const ClusterStorage& storage) {
  if (path.starts_with('/')) return path;
  const size_t slash = std::min(path.find('/'), path.size());
  const auto root = storage.roots.find(path.substr(0, slash));
  std::string joined = "/" + path;
  if (root != storage.roots.end()) joined = root->second + path.substr(slash);
  return NormalRoot(joined);
}

absl::Status CheckText(std::string_view field, std::string_view text) {
  if (text.empty())
    return BadUri(field, text, "names no data; write it like \"lustre:///data/train\"");
  if (text.size() > kMaxPathBytes || HasControlCharacter(text) || !IsUtf8(text)) {
    return BadUri(
        field, text,
        fmt::format("is not usable; use at most {} bytes of UTF-8 without control characters",
                    kMaxPathBytes));
  }
  return absl::OkStatus();
}

// Finds the kind of a scheme in lower case; returns false if there is no such scheme.
bool KindOf(std::string_view scheme, Kind* kind) {
  if (scheme == "lustre")
    *kind = Kind::kLustre;
  else if (scheme == "slurm")
    *kind = Kind::kSlurm;
  else if (scheme == "file" || scheme == "local")
    *kind = Kind::kFile;
  else
    return false;
  return true;
}

}  // namespace

bool IsClusterUri(std::string_view text) {
  const auto has_scheme = [&](std::string_view scheme) {
    return text.size() > scheme.size() &&
           std::equal(scheme.begin(), scheme.end(), text.begin(), [](char a, char b) {
             return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
           });
  };
  return has_scheme("lustre://") || has_scheme("slurm://");
}

absl::StatusOr<StorageUri> ParseStorageUri(std::string_view field, std::string_view text) {
  if (absl::Status good = CheckText(field, text); !good.ok()) return good;
  StorageUri uri;
  uri.kind = text.front() == '/' ? Kind::kAbsolute : Kind::kRelative;
  std::string_view path = text;
  if (const size_t end = text.find("://"); end != text.npos && text.find('/') == end + 1) {
    std::string scheme(text.substr(0, end));
    for (char& c : scheme) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    if (!KindOf(scheme, &uri.kind)) {
      return BadUri(field, text,
                    fmt::format("has the scheme {}; use lustre:///path, slurm://ROOT/path "
                                "or a path of the cluster",
                                Quoted(scheme)));
    }
    path.remove_prefix(end + 3);
    if (uri.kind == Kind::kSlurm && path.starts_with(kNoBucket)) {
      path.remove_prefix(kNoBucket.size() - 1);
    }
    if (uri.kind != Kind::kSlurm && !path.starts_with('/')) {
      return BadUri(field, text,
                    fmt::format("names a host; write {}:///{}, with three slashes", scheme, path));
    }
    if (path.empty()) return BadUri(field, text, "names no path; write it like slurm://ROOT/path");
  }
  if (!Normalize(path, &uri.path)) {
    return BadUri(field, text, "holds \"..\"; write the path that is meant");
  }
  return uri;
}

absl::Status ValidateClusterStorage(const ClusterStorage& storage) {
  const auto is_good = [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '-' || c == '_' || c == '.';
  };
  std::string normal;
  for (const auto& [name, path] : storage.roots) {
    const std::string field = fmt::format("roots[{}]", Quoted(name));
    if (name.empty() || name.size() > kMaxRootNameBytes || name == "." || name == ".." ||
        !std::all_of(name.begin(), name.end(), is_good)) {
      return BadField(field, "not a root's name; use 1 to 63 letters, digits, '-', '_' and '.'");
    }
    if (!path.starts_with('/') || !CheckText(field, path).ok() || !Normalize(path, &normal)) {
      return BadUri(field, path, "is not a usable root; use an absolute path without \"..\"");
    }
  }
  const std::string& start = storage.relative_to;
  if (!start.empty() && (!start.starts_with('/') || !CheckText("relative_to", start).ok() ||
                         !Normalize(start, &normal))) {
    return BadUri("relative_to", start, "is not usable; use an absolute path without \"..\"");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ResolveStorageUri(std::string_view field, std::string_view text,
                                              const ClusterStorage& storage) {
  const absl::StatusOr<StorageUri> uri = ParseStorageUri(field, text);
  if (!uri.ok()) return uri.status();
  std::string path = uri->path;
  if (uri->kind == Kind::kSlurm) path = SlurmPath(uri->path, storage);
  if (uri->kind == Kind::kRelative) {
    if (storage.relative_to.empty()) {
      return BadUri(field, text,
                    fmt::format("is a relative path, which means nothing on cluster {}; "
                                "copy the data there and write lustre:///path",
                                storage.cluster));
    }
    path = NormalRoot(storage.relative_to + "/" + uri->path);
  }
  const bool is_inside = IsInsideRoots(path, storage);
  // A plain path may be anyone's where no root tells which paths are the cluster's.
  const bool is_local =
      uri->kind == Kind::kFile || (uri->kind == Kind::kAbsolute && storage.roots.empty());
  if (storage.is_remote && is_local) {
    return BadUri(
        field, text,
        fmt::format("may be on your machine, whose files cluster {0} does not see; write "
                    "lustre://{1} if that is its path there, or copy the data there first",
                    storage.cluster, path));
  }
  if (!storage.roots.empty() && !is_inside) {
    return BadUri(field, text,
                  fmt::format("is {} on cluster {}, outside of where data is kept there; "
                              "use a path in {}",
                              Quoted(path), storage.cluster, ListRoots(storage)));
  }
  if (path.size() > kMaxPathBytes) {
    return BadUri(field, text,
                  fmt::format("is longer than {} bytes on cluster {}; shorten it", kMaxPathBytes,
                              storage.cluster));
  }
  return path;
}

}  // namespace muster::contract
