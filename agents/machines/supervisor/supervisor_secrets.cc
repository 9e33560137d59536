// Handles the secrets of a run: on the disk until the run is claimed, in this process until the
// command has them, and in files of the run until its end.
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agents/machines/run_files.h"
#include "agents/machines/run_user.h"
#include "agents/machines/small_file.h"
#include "agents/machines/supervisor/supervisor.h"

namespace muster::machines {
namespace {

void Wipe(std::vector<std::string>* texts) {
  for (std::string& text : *texts) explicit_bzero(text.data(), text.size());
  texts->clear();
}

// Returns the file of a secret "NAME=value".
std::string FileOf(const std::string& secret) {
  return kSecretFilePrefix + secret.substr(0, secret.find('='));
}

}  // namespace

bool Supervisor::TakeSecrets() {
  has_secrets_ = !spec_.secrets.empty() || !spec_.secret_files.empty();
  if (!has_secrets_) return true;
  if (spec_.user.IsOther() && !spec_.secret_files.empty()) {
    const std::string mark = PathOf(kUserSecretsFile);
    const int error = WriteSmallFile(mark, "", 0600);
    if (error != 0) return Failed(ExitRecord::Step::kFiles, error, mark);
  }
  for (const std::string& secret : spec_.secret_files) {
    const std::string name = FileOf(secret);
    const auto value = std::string_view(secret).substr(secret.find('=') + 1);
    const int error = spec_.user.IsOther() ? WriteUserSecret(spec_.user, name, value)
                                           : WriteSmallFile(PathOf(name.c_str()), value, 0600);
    if (error != 0) return Failed(ExitRecord::Step::kFiles, error, PathOf(name.c_str()));
  }
  Wipe(&spec_.secret_files);
  // Nobody else starts this run any more.
  std::vector<std::string> secrets = std::move(spec_.secrets);
  spec_.secrets.clear();
  const std::string path = PathOf(kSpecFile);
  const int error = ReplaceSmallFile(path, spec_.Encode(), 0600);
  spec_.secrets = std::move(secrets);
  return error == 0 || Failed(ExitRecord::Step::kFiles, error, path);
}

void Supervisor::ForgetSecrets() { Wipe(&spec_.secrets); }

void Supervisor::RemoveSecrets() {
  ForgetSecrets();
  if (!has_secrets_) return;
  RemoveSecretFiles(arguments_.directory);
  if (spec_.user.IsOther()) RemoveUserSecrets(arguments_.directory, spec_.user);
  unlink(PathOf(kEnterFile).c_str());
}

}  // namespace muster::machines
