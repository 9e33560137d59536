// Makes a host whose files are handled by short scripts with its own coreutils, since it is reached
// by commands alone.
#ifndef MUSTER_AGENTS_HOSTS_SCRIPT_HOST_H_
#define MUSTER_AGENTS_HOSTS_SCRIPT_HOST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/hosts/host.h"
#include "agents/hosts/ssh_exec.h"

namespace muster::hosts {

class ScriptHost : public Host {
 public:
  absl::Status WriteFile(std::string_view path, std::string_view content,
                         const WriteOptions& options) override;
  absl::StatusOr<std::string> ReadFileRange(std::string_view path, uint64_t offset,
                                            size_t max_bytes) override;
  absl::StatusOr<std::string> ReadFile(std::string_view path, size_t max_bytes) override;
  absl::Status MakeManyDirectories(const std::vector<std::string>& paths, uint32_t mode) override;
  absl::StatusOr<FileInfo> Stat(std::string_view path) override;
  absl::StatusOr<std::vector<std::string>> ListDirectory(std::string_view path) override;
  absl::Status RemoveTree(std::string_view path) override;
  std::vector<absl::StatusOr<FileInfo>> StatMany(const std::vector<std::string>& paths) override;
  std::vector<absl::StatusOr<std::string>> ReadMany(const std::vector<FilePart>& parts) override;
  absl::Status RemoveManyTrees(const std::vector<std::string>& paths) override;
  absl::Status RemoveEmptyDirectories(const std::vector<std::string>& paths) override;
  absl::Status WriteMany(const std::vector<NewFile>& files) override;

 protected:
  // Runs a script of ours to its end; UNAVAILABLE if it did not get there.
  virtual absl::StatusOr<ExecResult> RunScript(std::string_view body, std::string_view input,
                                               size_t max_stdout_bytes) = 0;

 private:
  // Does WriteMany for files that are not there yet, by the shell alone. Any error: nobody knows
  // which file it was.
  absl::Status WriteInPlace(const std::vector<NewFile>& files);
  absl::Status StatChunk(const std::vector<std::string>& paths, size_t begin, size_t end,
                         std::vector<absl::StatusOr<FileInfo>>* infos);
  absl::Status ReadChunk(const std::vector<FilePart>& parts, size_t begin, size_t end,
                         std::vector<absl::StatusOr<std::string>>* contents);
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SCRIPT_HOST_H_
