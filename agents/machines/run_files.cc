#include "agents/machines/run_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "agents/machines/container.h"
#include "agents/machines/control_group.h"
#include "agents/machines/run_user.h"
#include "agents/machines/small_file.h"

namespace muster::machines {
namespace {

constexpr mode_t kSecretMode = 0600;

// Returns whether its claim says that nothing of the run has ever run, and nothing else says
// otherwise.
bool IsClosedUnstarted(const std::string& directory) {
  std::string bytes;
  if (ReadSmallFile(directory + "/" + kClaimFile, kMaxRecordBytes, &bytes) != 0) return false;
  const std::optional<Claim> claim = Claim::Decode(bytes);
  if (!claim.has_value() || !claim->End().has_value()) return false;
  for (const char* name : {kStartedFile, kExitFile, kStdoutFile, kStderrFile}) {
    if (IsThere(directory + "/" + name)) return false;
  }
  return true;
}

// Recognises a copy of the job's files that was never given its name (agents/files/host_trees.h).
bool IsPart(const std::string& name) {
  return name.rfind(std::string(kWorkDirectory) + ".part.", 0) == 0;
}

// A record whose writer was killed before it had its name (small_file.h).
bool IsUnfinished(const std::string& name) {
  const auto is_of = [&](const char* record) {
    return name.starts_with(std::string(record) + ".");
  };
  return name.ends_with(".tmp") &&
         (is_of(kSpecFile) || is_of(kClaimFile) || is_of(kStartedFile) || is_of(kExitFile));
}

// Removes files that nobody uses: unfinished records, and the copies of the job's files that no run
// has had.
void RemoveUnused(const std::string& directory) {
  std::vector<std::string> unused;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (IsPart(name) || IsUnfinished(name)) unused.push_back(entry->path().string());
  }
  if (IsClosedUnstarted(directory)) {
    unused.push_back(directory + "/" + kWorkDirectory);
    if (const std::optional<RunUser> user = ReadRunUser(directory))
      RemoveUserDirectory(directory, *user, kUserRemovalMs);
  }
  for (const std::string& path : unused) std::filesystem::remove_all(path, error);
}

}  // namespace

bool IsThere(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0;
}

int CloseWithoutStart(const std::string& directory, int64_t now_us) {
  const Claim claim = {.owner = Identify(getpid()), .devices = "", .closed_us = now_us};
  return ClaimFile(directory + "/" + kClaimFile, claim.Encode(), kSecretMode);
}

void RemoveSecretFiles(const std::string& directory) {
  std::vector<std::string> found;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().filename().string().starts_with(kSecretFilePrefix))
      found.push_back(entry->path().string());
  }
  for (const std::string& path : found) unlink(path.c_str());
}

void RemoveRunBookkeeping(const std::string& directory) {
  RemoveSecretFiles(directory);
  if (const std::optional<RunUser> user = ReadRunUser(directory))
    RemoveUserSecrets(directory, *user);
  RemoveGroupsOf(directory);
  RemoveUnused(directory);
  for (const char* name :
       {kSpecFile, kStartedFile, kCancelFile, kSetupFile, kCommandFile, kEnterFile,
        kContainerLogFile, kEnrootImageFile, kApptainerImageFile, kConmonOomFile})
    unlink((directory + "/" + name).c_str());
}

void RemoveRunLogs(const std::string& directory) {
  for (const char* name : {kStdoutFile, kStderrFile, kExitFile})
    unlink((directory + "/" + name).c_str());
  // rmdir leaves alone what is not empty.
  for (const char* name : {kResultsDirectory, kWorkDirectory})
    rmdir((directory + "/" + name).c_str());
  // The same for a directory of the user's own.
  const std::optional<RunUser> user = ReadRunUser(directory);
  if (user.has_value() && RunAsUser(*user, {"leave", user->directory}) == 0) ForgetUser(directory);
  // Files that the user has left keep the claim beside them, which tells that they belong to a past
  // run.
  if (IsThere(directory + "/" + kWorkDirectory) || IsThere(directory + "/" + kUserFile)) return;
  unlink((directory + "/" + kClaimFile).c_str());
  rmdir(directory.c_str());
}

}  // namespace muster::machines
