#include "agents/machines/remote/supervisor_program.h"

#include <openssl/evp.h>

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "agents/machines/small_file.h"
#include "contract/message_of.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// A static program with the C++ library has one or two; with sanitizers a hundred.
constexpr size_t kMaxProgramBytes = 256 << 20;
// Bytes of a host's words about a failure.
constexpr size_t kMaxProgramWordsBytes = 1000;

constexpr char kProgram[] = "muster-supervisor";

// The exit codes of the check below.
constexpr int kNotSafe = 3;  // the directories that others can change are on standard output
constexpr int kNotThere = 4;

// PROGRAM DIGEST DIRECTORY...
constexpr char kCheck[] = R"sh(
program=$1; digest=$2; shift 2
unsafe=$(find "$@" -maxdepth 0 '(' ! -user "$(id -u)" ! -user 0 -o -perm /022 ')')
[ -z "$unsafe" ] || {
  echo "$unsafe";
  exit 3;
}
sum=$(sha256sum <"$program") && [ "${sum%% *}" = "$digest" ] || exit 4
exec "$program" --version
)sh";

std::string Digest(const std::string& content) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(content.data(), content.size(), digest, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

std::string Head(const std::string& words) {
  return std::string(
      absl::StripAsciiWhitespace(absl::string_view(words).substr(0, kMaxProgramWordsBytes)));
}

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

absl::Status NotSafe(const std::string& directories) {
  return absl::FailedPreconditionError(fmt::format(
      "others than the user can change what is in {}; take the directory from them (chown, chmod "
      "go-w), or set machines.host_directory to one that is the user's own",
      directories));
}

absl::Status DoesNotRun(const std::string& path, const std::string& words) {
  return absl::FailedPreconditionError(fmt::format(
      "\"{}\" does not run there: {}; the host must have this machine's kind of processor, and let "
      "programs run in that directory (no noexec), or set machines.host_directory",
      path, words));
}

// OK: it is there and runs. NOT_FOUND: it is not, or is another one.
absl::Status CheckProgram(const SupervisorProgram& program, const std::string& path,
                          const std::string& directory, hosts::Host* host) {
  const std::string own = ParentOf(path);
  const absl::StatusOr<hosts::CommandResult> checked =
      host->Run({.argv = {"/bin/sh", "-c", kCheck, "sh", path, program.digest, ParentOf(directory),
                          directory, directory + "/runs", ParentOf(own), own}});
  if (!checked.ok()) return absl::UnavailableError(checked.status().message());
  if (checked->ok()) return absl::OkStatus();
  if (checked->signal == 0 && checked->exit_code == kNotSafe)
    return NotSafe(Head(checked->stdout_data));
  if (checked->signal == 0 && checked->exit_code == kNotThere)
    return absl::NotFoundError(Head(checked->stderr_data));
  return DoesNotRun(path, Head(checked->stderr_data));
}

// Removes the programs of earlier versions; runs that use them go on.
void RemoveOthers(const std::string& directory, const std::string& digest, hosts::Host* host) {
  const absl::StatusOr<std::vector<std::string>> names = host->ListDirectory(directory);
  if (!names.ok()) return;
  std::vector<std::string> others;
  for (const std::string& name : *names) {
    if (name != digest) others.push_back(fmt::format("{}/{}", directory, name));
  }
  // They are in nobody's way.
  if (!others.empty()) static_cast<void>(host->RemoveManyTrees(others));
}

}  // namespace

std::string SupervisorProgram::DirectoryIn(const std::string& directory) const {
  return fmt::format("{}/bin/{}", directory, digest);
}

absl::StatusOr<SupervisorProgram> ReadSupervisorProgram(const std::string& path) {
  SupervisorProgram program;
  if (const int error = ReadSmallFile(path, kMaxProgramBytes, &program.content); error != 0) {
    return absl::ErrnoToStatus(error,
                               fmt::format("cannot read \"{}\"; install muster-supervisor beside "
                                           "muster-agent, or set machines.supervisor",
                                           path));
  }
  program.digest = Digest(program.content);
  return program;
}

absl::StatusOr<std::string> PutSupervisor(const SupervisorProgram& program,
                                          const std::string& directory, hosts::Host* host) {
  const std::string own = program.DirectoryIn(directory);
  const std::string path = fmt::format("{}/{}", own, kProgram);
  if (absl::Status s = host->MakeManyDirectories({directory + "/runs", own}, 0700); !s.ok())
    return s;
  absl::Status checked = CheckProgram(program, path, directory, host);
  if (checked.ok()) return path;
  if (!absl::IsNotFound(checked)) return checked;
  if (absl::Status s = host->WriteFile(path, program.content, {.mode = 0700}); !s.ok()) return s;
  checked = CheckProgram(program, path, directory, host);
  if (absl::IsNotFound(checked)) return DoesNotRun(path, MessageOf(checked));
  if (!checked.ok()) return checked;
  RemoveOthers(ParentOf(own), program.digest, host);
  return path;
}

}  // namespace muster::machines
