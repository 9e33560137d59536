#include <dirent.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "agents/core/lease_file.h"
#include "agents/machines/host_report.h"
#include "agents/machines/small_file.h"
#include "agents/machines/supervisor/host_commands.h"

namespace muster::machines {
namespace {

bool IsLeaseName(std::string_view name) {
  return name.starts_with(agents::kLeasePrefix) && name.find('/') == name.npos;
}

// The files of earlier terms tell nobody anything.
void RemoveOthers(const std::string& directory, const std::string& kept) {
  DIR* const listing = opendir(directory.c_str());
  if (listing == nullptr) return;
  std::vector<std::string> others;
  while (const dirent* entry = readdir(listing)) {
    if (IsLeaseName(entry->d_name) && entry->d_name != kept) others.emplace_back(entry->d_name);
  }
  closedir(listing);
  for (const std::string& name : others) unlink((directory + "/" + name).c_str());
}

}  // namespace

int LeaseCommand(const std::string& directory, const std::string& name,
                 const std::string& content) {
  if (!IsLeaseName(name) || !agents::ParseLeaseFile(content).has_value())
    return HostError("write", name, EINVAL);
  const std::string path = directory + "/" + name;
  if (const int error = ReplaceSmallFile(path, content, 0600))
    return HostError("write", path, error);
  RemoveOthers(directory, name);
  return kHostDone;
}

}  // namespace muster::machines
