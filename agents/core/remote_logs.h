// Growing files on another host, read for many logs in one go.
//
// A look at a thousand logs one by one would be a thousand round trips. So whoever wants to read
// one names all those that he will want to read next: they are looked at together, what is new in
// them is fetched together, and each answer waits here until it is asked for, once.
//
// Owner: the log shipper's thread.
#ifndef MUSTER_AGENTS_CORE_REMOTE_LOGS_H_
#define MUSTER_AGENTS_CORE_REMOTE_LOGS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/hosts/host.h"

namespace muster::agents {

class RemoteLogs {
 public:
  struct Want {
    std::string path;
    uint64_t offset = 0;
  };

  // `wants` lists the logs that will be read next; what is beyond kMaxWants is left out. `host`
  // must outlive this object.
  RemoteLogs(hosts::Host* host, std::function<std::vector<Want>()> wants)
      : host_(host), wants_(std::move(wants)) {}

  // Reads like LogFile::Read. A short answer means that the file ended there when it was looked at,
  // which was after the last Forget.
  absl::StatusOr<std::string> Read(const std::string& path, uint64_t offset, size_t max_bytes);
  // Returns the size like LogFile::Size; always asked anew.
  absl::StatusOr<uint64_t> Size(const std::string& path);
  // Drops what was fetched of the file.
  void Forget(const std::string& path) { fetched_.erase(path); }

 private:
  struct Fetched {
    uint64_t offset = 0;
    absl::StatusOr<std::string> data;
    bool is_end = false;  // the file has no more than that
  };

  // Returns whether the answer is here and says enough.
  static bool Answers(const Fetched& fetched, uint64_t offset, size_t max_bytes);
  void Fetch(const Want& first, size_t max_bytes);
  void FetchGrown(const std::vector<hosts::FilePart>& parts, const std::vector<uint64_t>& sizes);

  hosts::Host* const host_;
  const std::function<std::vector<Want>()> wants_;
  std::map<std::string, Fetched> fetched_;  // by path
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_REMOTE_LOGS_H_
