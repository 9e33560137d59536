// Defines the words between the agent and muster-supervisor on a host over SSH: a frame for each
// command, and one for each answer, in any order.
//
// Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_HOST_FRAMES_H_
#define MUSTER_AGENTS_MACHINES_HOST_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::machines {

// A report of a hundred thousand runs with their exit records.
inline constexpr size_t kMaxFrameBytes = 64 << 20;

struct HostFrame {
  std::string head;
  std::string body;
};

// A command of muster-supervisor, as words of a command line.
struct HostRequest {
  int64_t id = 0;
  int64_t patience_ms = 0;  // when it is over, the command is killed
  std::vector<std::string> words = {};
  std::string input = {};

  std::string Encode() const;
  static std::optional<HostRequest> Decode(HostFrame frame);
};

// The end of the command.
struct HostAnswer {
  int64_t id = 0;
  int exit_code = 0;  // of host_report.h
  int signal = 0;     // that has ended it; 0: none
  std::string complaint = {};
  std::string output = {};

  std::string Encode() const;
  static std::optional<HostAnswer> Decode(HostFrame frame);
};

// Puts the frames together again.
class FrameReader {
 public:
  void Add(std::string_view bytes) { bytes_ += bytes; }
  // The next frame, once all of it is there.
  std::optional<HostFrame> Next();
  // The other side says something else than frames.
  bool is_broken() const { return is_broken_; }

 private:
  std::string bytes_;
  size_t begin_ = 0;  // of what is not taken yet
  bool is_broken_ = false;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_HOST_FRAMES_H_
