// Shows the output of runs as files. The remote broker has the output, and gives it by job, rank
// and stream.
#ifndef MUSTER_AGENTS_MUSTER_LOG_HOST_H_
#define MUSTER_AGENTS_MUSTER_LOG_HOST_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/hosts/host.h"
#include "agents/muster/connection.h"

namespace muster::remote {

// One output of a run, and its path on the host of logs.
struct LogName {
  std::string run_key;
  uint32_t rank = 0;
  v1::LogStream stream = v1::LOG_STREAM_STDOUT;

  std::string Path() const;  // "/k7m2-42-1/rank-0.out"
  static std::optional<LogName> Parse(std::string_view path);
};

// Any thread may use it. It runs nothing, and takes no files.
class LogHost final : public hosts::Host {
 public:
  struct JobOfRun {
    uint64_t id = 0;
    bool has_ended = false;  // and its end was told: what comes later must not be missed
  };
  // Returns the job of a run. NOT_FOUND: there is none; UNAVAILABLE: nobody could be asked.
  using FindJob = std::function<absl::StatusOr<JobOfRun>(const std::string& run_key)>;

  // The connection outlives it.
  LogHost(Connection* connection, FindJob find_job)
      : connection_(*connection), find_job_(std::move(find_job)) {}

  std::string Name() const override { return "the remote broker"; }
  absl::StatusOr<std::string> ReadFileRange(std::string_view path, uint64_t offset,
                                            size_t max_bytes) override;
  absl::StatusOr<std::string> ReadFile(std::string_view path, size_t max_bytes) override;
  absl::StatusOr<hosts::FileInfo> Stat(std::string_view path) override;
  std::vector<absl::StatusOr<hosts::FileInfo>> StatMany(
      const std::vector<std::string>& paths) override;
  std::vector<absl::StatusOr<std::string>> ReadMany(
      const std::vector<hosts::FilePart>& parts) override;

  absl::StatusOr<hosts::CommandResult> Run(const hosts::Command&) override { return Refusal(); }
  absl::Status WriteFile(std::string_view, std::string_view, const hosts::WriteOptions&) override {
    return Refusal();
  }
  absl::StatusOr<std::vector<std::string>> ListDirectory(std::string_view) override {
    return Refusal();
  }
  absl::Status RemoveTree(std::string_view) override { return Refusal(); }
  absl::Status MakeManyDirectories(const std::vector<std::string>&, uint32_t) override {
    return Refusal();
  }
  absl::Status RemoveManyTrees(const std::vector<std::string>&) override { return Refusal(); }
  absl::Status RemoveEmptyDirectories(const std::vector<std::string>&) override {
    return Refusal();
  }
  absl::Status WriteMany(const std::vector<hosts::NewFile>&) override { return Refusal(); }

 private:
  static absl::Status Refusal() {
    return absl::UnimplementedError("the host of logs runs nothing and takes no files");
  }
  // Returns the logs that the broker has of the run; a job without a run has none. Returns
  // UNAVAILABLE if the run has ended and the broker still waits for more of them.
  absl::StatusOr<v1::ListLogsResponse> ListLogs(const std::string& run_key);
  // The same for each run of which a path names a log.
  std::map<std::string, absl::StatusOr<v1::ListLogsResponse>> ListLogsOf(
      const std::vector<std::string>& paths);

  Connection& connection_;
  const FindJob find_job_;
};

}  // namespace muster::remote

#endif  // MUSTER_AGENTS_MUSTER_LOG_HOST_H_
