#include "agents/machines/run_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "agents/core/run_program.h"
#include "agents/machines/file_status.h"
#include "agents/machines/run_files.h"
#include "agents/machines/run_request.h"
#include "agents/machines/run_user.h"
#include "agents/machines/small_file.h"
#include "contract/image.h"
#include "daemon/log.h"
#include "fmt/format.h"
#include "google/protobuf/util/time_util.h"

namespace muster::machines {
namespace {

constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kSecretMode = 0600;

// A file that does not decode counts as absent.
template <typename T>
absl::Status LoadRecord(const std::string& path, size_t max_bytes, std::optional<T>* record,
                        bool* exists = nullptr) {
  const absl::StatusOr<std::optional<std::string>> bytes = LoadFile(path, max_bytes);
  if (!bytes.ok()) return bytes.status();
  if (exists != nullptr) *exists = bytes->has_value();
  if (bytes->has_value()) *record = T::Decode(**bytes);
  return absl::OkStatus();
}

// Describes setup and command.
void DescribeProgram(const v1::JobSpec& job, const std::string& directory, RunSpec* spec) {
  const RunDirectory run(directory);
  spec->working_directory =
      job.working_directory().empty() ? run.PathOf(kWorkDirectory) : job.working_directory();
  if (!job.setup().empty()) {
    spec->setup_script = job.setup();
    spec->setup_words = agents::WordsForScript(job.setup(), run.PathOf(kSetupFile));
  }
  spec->command_script = job.command().script();
  spec->command_words = agents::WordsForCommand(job.command(), run.PathOf(kCommandFile));
}

static_assert(agents::kSecretFilePrefix == kSecretFilePrefix);

// Describes the job's secrets. A variable has the path of one that is in a file.
void DescribeSecrets(const agent::v1::Assignment& assignment, const std::string& directory,
                     RunSpec* spec) {
  const std::map<std::string, std::string> values = agents::SecretVariables(assignment, directory);
  for (const agent::v1::RunSecret& secret : assignment.secrets()) {
    auto& variables = secret.as_file() ? spec->environment : spec->secrets;
    variables.push_back(secret.variable() + "=" + values.at(secret.variable()));
    if (secret.as_file()) spec->secret_files.push_back(secret.variable() + "=" + secret.value());
  }
}

// Its container, whose image and mounts CheckImage has found good.
void DescribeContainer(const v1::JobSpec& job, const std::string& directory,
                       const std::string& tool, RunSpec* spec) {
  const absl::StatusOr<contract::Image> image = contract::ParseImage(job.image());
  if (job.image().empty() || !image.ok()) return;
  spec->container_tool = tool;
  spec->image = contract::OciReference(*image);
  spec->mounts = {fmt::format("{}:{}", directory, directory)};
  for (const v1::Mount& mount : job.mounts()) {
    spec->mounts.push_back(
        fmt::format("{}:{}{}", mount.source(), mount.target(), mount.read_only() ? ":ro" : ""));
  }
}

}  // namespace

std::vector<std::string> Variables(const std::map<std::string, std::string>& environment) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  return variables;
}

absl::Status ForEachRun(const std::string& runs_directory,
                        const std::function<void(const std::string& run_key)>& show) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(runs_directory, error), end;
       !error && entry != end; entry.increment(error)) {
    show(entry->path().filename().string());
  }
  return error ? FileError(error.value(), "list", runs_directory) : absl::OkStatus();
}

RunSpec MakeRunSpec(const agent::v1::Assignment& assignment, const std::string& directory,
                    const std::map<std::string, std::string>& environment, const RunRules& rules) {
  const v1::JobSpec& job = assignment.spec();
  const Request request = RequestOf(job);
  RunSpec spec;
  spec.run_key = assignment.run_key();
  spec.priority = job.priority();
  spec.cores = request.cores;
  spec.memory_bytes = request.memory_bytes;
  spec.gpu_type = request.gpu_type;
  spec.gpu_millis = request.gpu_millis;
  DescribeProgram(job, directory, &spec);
  DescribeContainer(job, directory, rules.container_tool, &spec);
  spec.environment = Variables(environment);
  DescribeSecrets(assignment, directory, &spec);
  spec.time_limit_ms = google::protobuf::util::TimeUtil::DurationToMilliseconds(job.time_limit());
  spec.grace_ms = absl::ToInt64Milliseconds(rules.cancel_grace);
  if (rules.limits) {
    spec.memory_limit_bytes = job.resources().memory_bytes();
    // One that names no cores has one in the ledger, and what is idle besides.
    if (job.resources().cpu_millis() > 0) spec.core_limit = request.cores;
  }
  return spec;
}

std::string RunDirectory::PathOf(std::string_view name) const {
  return fmt::format("{}/{}", path_, name);
}

bool RunDirectory::Exists() const { return access(path_.c_str(), F_OK) == 0; }

absl::StatusOr<RunFiles> RunDirectory::Read() const {
  RunFiles files;
  if (absl::Status s = LoadRecord(PathOf(kSpecFile), kMaxSpecBytes, &files.spec); !s.ok()) return s;
  if (absl::Status s =
          LoadRecord(PathOf(kClaimFile), kMaxRecordBytes, &files.claim, &files.claimed);
      !s.ok()) {
    return s;
  }
  if (absl::Status s = LoadRecord(PathOf(kStartedFile), kMaxRecordBytes, &files.started); !s.ok())
    return s;
  if (absl::Status s = LoadRecord(PathOf(kExitFile), kMaxRecordBytes, &files.exit); !s.ok())
    return s;
  if (!files.exit.has_value() && files.claim.has_value()) files.exit = files.claim->End();
  files.cancel_asked = access(PathOf(kCancelFile).c_str(), F_OK) == 0;
  return files;
}

absl::StatusOr<std::optional<Started>> RunDirectory::ReadStarted() const {
  std::optional<Started> started;
  if (absl::Status s = LoadRecord(PathOf(kStartedFile), kMaxRecordBytes, &started); !s.ok())
    return s;
  return started;
}

absl::Status RunDirectory::TakeWork(const std::string& work) const {
  if (mkdir(path_.c_str(), kDirectoryMode) != 0 && errno != EEXIST)
    return FileError(errno, "make the directory", path_);
  const std::string target = PathOf(kWorkDirectory);
  std::error_code error;
  std::filesystem::remove_all(target, error);  // of a launch that was cut short
  if (!error && rename(work.c_str(), target.c_str()) == 0) return absl::OkStatus();
  return FileError(error ? error.value() : errno, "replace", target);
}

bool RunDirectory::HasWork() const { return IsThere(PathOf(kWorkDirectory)); }

void RunDirectory::RemoveWork() const {
  std::error_code ignored;
  std::filesystem::remove_all(PathOf(kWorkDirectory), ignored);
}

absl::Status RunDirectory::Create(const RunSpec& spec) const {
  const bool made = mkdir(path_.c_str(), kDirectoryMode) == 0;
  if (!made && errno != EEXIST) return FileError(errno, "make the directory", path_);
  const std::string spec_path = PathOf(kSpecFile);
  absl::Status written;
  if (spec.user.IsOther()) written = StoreFile(PathOf(kUserFile), spec.user.Encode(), kSecretMode);
  if (written.ok()) written = StoreFile(spec_path, spec.Encode(), kSecretMode);
  if (written.ok()) return written;
  // Nothing may be left that a restart would take for a queued run.
  unlink(spec_path.c_str());
  unlink(PathOf(kUserFile).c_str());
  if (made) rmdir(path_.c_str());
  return written;
}

absl::Status RunDirectory::AskCancel() const {
  const std::string path = PathOf(kCancelFile);
  if (const int error = WriteSmallFile(path, "", kSecretMode))
    return FileError(error, "make", path);
  return absl::OkStatus();
}

absl::Status RunDirectory::CloseWithoutStart(int64_t now_us) const {
  const int error = machines::CloseWithoutStart(path_, now_us);
  return error == 0 ? absl::OkStatus() : FileError(error, "make", PathOf(kClaimFile));
}

void RunDirectory::RemoveBookkeeping() const {
  RemoveRunBookkeeping(path_);
  if (!IsThere(PathOf(kUserSecretsFile))) return;
  const RunUser user = ReadRunUser(path_).value_or(RunUser{});
  LogEvent(spdlog::level::warn, "secrets_not_removed",
           {{"run", std::filesystem::path(path_).filename().string()},
            {"user", user.name},
            {"directory", user.directory},
            {"remedy", fmt::format("remove {}* there, or mend what \"{} check {}\" says to the "
                                   "agent's user and restart the agent",
                                   kSecretFilePrefix, user.helper, user.name)}});
}

void RunDirectory::RemoveLogs() const { RemoveRunLogs(path_); }

}  // namespace muster::machines
