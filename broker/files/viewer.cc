#include "broker/files/viewer.h"

#include <algorithm>

#include "digest/sha256.h"

namespace muster::files {
namespace {

// Nobody finds two names with the same 16 bytes.
constexpr size_t kOwnerBytes = 16;

std::string OwnerOf(std::string_view kind, std::string_view name) {
  Sha256 digest;
  digest.Add(kind);
  digest.Add(name);
  return digest.FinishBytes().substr(0, kOwnerBytes);
}

}  // namespace

// No name holds the space that ends the kind.
std::string OwnerOfUser(std::string_view user) { return OwnerOf("user ", user); }
std::string OwnerOfProject(std::string_view project) { return OwnerOf("project ", project); }

Viewer::Viewer(bool sees_all, std::string_view user, const std::vector<std::string>& projects)
    : sees_all_(sees_all), self_(OwnerOfUser(user)) {
  if (sees_all) return;
  std::vector<std::string> owners = {self_};
  for (const std::string& project : projects) owners.push_back(OwnerOfProject(project));
  std::sort(owners.begin(), owners.end());
  for (const std::string& owner : owners) key_ += owner;
  owners_.insert(owners.begin(), owners.end());
}

}  // namespace muster::files
