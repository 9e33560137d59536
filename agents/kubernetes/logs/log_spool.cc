#include "agents/kubernetes/logs/log_spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "absl/status/statusor.h"
#include "agents/kubernetes/api/json_fields.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// At most this many containers of one rank are remembered as read in its position, so that the end
// of one and where the next begins are written together. Containers before them are in a file of
// their own: as many as the run has had, for any of its pods may be named until its end.
constexpr size_t kMaxFinished = 16;
// The position is written in place, in one page: the kernel does not stop in the middle of one.
constexpr size_t kMaxPositionBytes = 4096;
constexpr int kCompareBytes = 64 << 10;

class File {
 public:
  File(const std::string& path, int flags)
      : fd_(open(path.c_str(), flags | O_CLOEXEC, 0640)) {}  // NOLINT(*-vararg)
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  const int fd_;
};

absl::Status ErrorOf(int error, std::string_view what, const std::string& path) {
  const absl::Status status = absl::ErrnoToStatus(error, fmt::format("{} {}", what, path));
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return is_full ? absl::ResourceExhaustedError(std::string(status.message())) : status;
}

// Leaves in `bytes` what could not be written.
absl::Status AppendTo(const std::string& path, std::string_view* bytes) {
  const File file(path, O_WRONLY | O_CREAT | O_APPEND);
  if (!file.is_open()) return ErrorOf(errno, "cannot write", path);
  while (!bytes->empty()) {
    const ssize_t written = write(file.fd(), bytes->data(), bytes->size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return ErrorOf(written < 0 ? errno : ENOSPC, "cannot write", path);
    bytes->remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

uint64_t SizeOf(const std::string& path) {
  struct stat file = {};
  return stat(path.c_str(), &file) == 0 ? static_cast<uint64_t>(file.st_size) : 0;
}

}  // namespace

void LogSpool::Load() {
  const uint64_t size = SizeOf(path_);
  std::ifstream earlier(EarlierPath());
  for (std::string source; std::getline(earlier, source);) {
    if (!source.empty()) earlier_.insert(source);
  }
  std::ifstream file(path_ + ".position");
  std::string line;
  std::getline(file, line);
  const Json saved = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!saved.is_object()) {
    offset_ = size;
    return;
  }
  source_ = TextAt(saved, "source");
  begin_ = static_cast<uint64_t>(NumberAt(saved, "begin"));
  offset_ = static_cast<uint64_t>(NumberAt(saved, "offset"));
  position_ = {.time = NumberAt(saved, "time", LogPosition::kNoTime),
               .latest = NumberAt(saved, "latest", LogPosition::kNoTime),
               .count = static_cast<uint64_t>(NumberAt(saved, "count")),
               .bytes = static_cast<uint64_t>(NumberAt(saved, "bytes"))};
  for (const Json& source : At(saved, "finished")) {
    if (source.is_string()) finished_.push_back(source.get<std::string>());
  }
  if (size < offset_) {
    // The machine went down before the output was on its disk: the container's log is read from its
    // beginning again, and compared with what is left of it.
    position_ = {};
    offset_ = std::min(begin_, size);
  }
  ahead_ = size - offset_;
}

bool LogSpool::HasFinished(const std::string& source) const {
  return earlier_.contains(source) ||
         std::find(finished_.begin(), finished_.end(), source) != finished_.end();
}

absl::Status LogSpool::SavePosition() const {
  const Json saved = {{"source", source_},          {"begin", begin_},
                      {"offset", offset_},          {"time", position_.time},
                      {"latest", position_.latest}, {"count", position_.count},
                      {"bytes", position_.bytes},   {"finished", finished_}};
  std::string text = saved.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (text.size() > kMaxPositionBytes)
    return absl::InternalError(fmt::format("the position of {} is too long", path_));
  const File file(path_ + ".position", O_WRONLY | O_CREAT);
  if (!file.is_open()) return ErrorOf(errno, "cannot write", path_ + ".position");
  if (pwrite(file.fd(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return ErrorOf(errno, "cannot write", path_ + ".position");
  return absl::OkStatus();
}

absl::Status LogSpool::Begin(const std::string& source) {
  source_ = source;
  position_ = {};
  offset_ += ahead_;
  ahead_ = 0;
  begin_ = offset_;
  return SavePosition();
}

bool LogSpool::LeaveOutKnown(std::string_view* bytes) {
  const File file(path_, O_RDONLY);
  std::string there;
  while (ahead_ > 0 && !bytes->empty()) {
    there.resize(std::min<uint64_t>({ahead_, bytes->size(), kCompareBytes}));
    const ssize_t got = pread(file.fd(), there.data(), there.size(), static_cast<off_t>(offset_));
    if (got <= 0 || bytes->substr(0, static_cast<size_t>(got)) !=
                        std::string_view(there).substr(0, static_cast<size_t>(got)))
      return false;
    bytes->remove_prefix(static_cast<size_t>(got));
    offset_ += static_cast<uint64_t>(got);
    ahead_ -= static_cast<uint64_t>(got);
  }
  return true;
}

absl::Status LogSpool::Write(std::string_view bytes) {
  const size_t wanted = bytes.size();
  const absl::Status status = AppendTo(path_, &bytes);
  ahead_ += wanted - bytes.size();
  return status;
}

absl::Status LogSpool::Append(std::string_view news, const LogPosition& after, bool has_gap) {
  const uint64_t offset = offset_;
  const uint64_t ahead = ahead_;
  const std::string all = has_gap ? InLineOfItsOwn(kRotatedLine, offset_) + std::string(news) : "";
  std::string_view bytes = has_gap ? all : news;
  if (!LeaveOutKnown(&bytes)) {
    // The node tells another log than it did: what is there stays, and all of this comes after it.
    offset_ = offset + ahead;
    ahead_ = 0;
    if (absl::Status said = Say(kRotatedLine); !said.ok()) return said;
    bytes = news;
  }
  if (!bytes.empty()) {
    if (absl::Status written = Write(bytes); !written.ok()) {
      // The bytes come again from where the position says.
      ahead_ += offset_ - offset;
      offset_ = offset;
      return written;
    }
    offset_ += ahead_;
    ahead_ = 0;
  }
  position_ = after;
  // A position that is too old costs the next process some reading, and no output.
  (void)SavePosition();
  return absl::OkStatus();
}

std::string LogSpool::InLineOfItsOwn(std::string_view line, uint64_t offset) const {
  char last = '\n';
  if (offset > 0) {
    const File file(path_, O_RDONLY);
    if (pread(file.fd(), &last, 1, static_cast<off_t>(offset - 1)) != 1) last = '\n';
  }
  return (last == '\n' ? "" : "\n") + std::string(line);
}

absl::Status LogSpool::Say(std::string_view line) {
  if (absl::Status written = Write(InLineOfItsOwn(line, offset_ + ahead_)); !written.ok())
    return written;
  // With what was there beyond the position: it is not compared with anything any more.
  offset_ += ahead_;
  ahead_ = 0;
  (void)SavePosition();
  return absl::OkStatus();
}

absl::Status LogSpool::Finish() {
  if (finished_.size() == kMaxFinished) {
    // This comes first, since twice does no harm. A line that a full disk has cut belongs to no
    // container.
    const std::string line = "\n" + finished_.front() + "\n";
    std::string_view left = line;
    if (absl::Status kept = AppendTo(EarlierPath(), &left); !kept.ok()) return kept;
    earlier_.insert(std::move(finished_.front()));
    finished_.pop_front();
  }
  finished_.push_back(source_);
  source_.clear();
  position_ = {};
  return SavePosition();
}

}  // namespace muster::kubernetes
