#include "agents/kubernetes/logs/log_lines.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace muster::kubernetes {
namespace {

constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.ddddddddd";
constexpr std::string_view kOffset = "dd:dd ";  // after '+' or '-'
// The length at which container runtimes cut long lines.
constexpr uint64_t kFragmentBytes = 16 << 10;
constexpr size_t kMaxWordsBytes = 1024;

// These are the first words of kubelets when they cannot read a log, or not on: they say so in an
// answer that is OK, as they have written to it before. (Kubernetes: kuberuntime_container.go,
// cri-client's logs.go, and there what the container runtime and fsnotify say, which is handed on
// as it is. All that kubelet_pods.go says by itself comes before, with status 400.)
constexpr std::array<std::string_view, 13> kNodesWords = {
    "failed to try resolving symlinks in path \"",
    "failed to open log file \"",
    "failed to read log file \"",
    "failed to reset seek in log file \"",
    "failed to create fsnotify watcher: ",
    "failed to watch directory \"",
    "failed to get parse function: ",
    "unable to retrieve container logs for ",
    "container status is nil",
    "container \"",  // "... not found": of runtimes that are part of the kubelet's process
    "context cancelled",
    "rpc error: code = ",  // the runtime has removed the container, or does not answer
    "fsnotify: queue or buffer overflow",
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool Fits(char c, char shape) { return shape == 'd' ? IsDigit(c) : c == shape; }

// Counts characters at the beginning of the text that have the shape.
size_t FitLength(std::string_view text, std::string_view shape) {
  size_t length = 0;
  while (length < std::min(text.size(), shape.size()) && Fits(text[length], shape[length]))
    ++length;
  return length;
}

int Number(std::string_view text, size_t begin, size_t digits) {
  int number = 0;
  for (const char c : text.substr(begin, digits)) number = number * 10 + (c - '0');
  return number;
}

bool MayBeWords(std::string_view text, bool* is_whole) {
  for (const std::string_view words : kNodesWords) {
    *is_whole = text.starts_with(words);
    if (*is_whole || words.starts_with(text)) return true;
  }
  return false;
}

}  // namespace

size_t ReadStamp(std::string_view text, int64_t* time, bool* may_become) {
  const size_t fits = FitLength(text, kShape);
  *may_become = fits == text.size();
  if (fits < kShape.size() || text.size() == fits) return 0;
  size_t length = fits + 1;
  int offset = 0;
  if (text[fits] == 'Z') {
    *may_become = text.size() == length;
    if (text.size() == length || text[length] != ' ') return 0;
    ++length;
  } else if (text[fits] == '+' || text[fits] == '-') {
    const std::string_view rest = text.substr(length);
    const size_t rest_fits = FitLength(rest, kOffset);
    *may_become = rest_fits == rest.size() && rest_fits < kOffset.size();
    if (rest_fits < kOffset.size()) return 0;
    offset = (Number(rest, 0, 2) * 60 + Number(rest, 3, 2)) * (text[fits] == '+' ? 60 : -60);
    length += kOffset.size();
  } else {
    return 0;
  }
  const absl::CivilSecond second(Number(text, 0, 4), Number(text, 5, 2), Number(text, 8, 2),
                                 Number(text, 11, 2), Number(text, 14, 2), Number(text, 17, 2));
  const int64_t seconds = (second - absl::CivilSecond(1970)) - offset;
  *time = seconds * 1'000'000'000 + Number(text, 20, 9);
  *may_become = false;
  return length;
}

LogLines::LogLines(const LogPosition& known, bool is_split)
    : known_(known), is_split_(is_split), is_searching_(known.count > 0), position_(known) {}

void LogLines::Take(std::string_view bytes, std::string* news) {
  while (!bytes.empty()) {
    switch (place_) {
      case Place::kText:
        bytes.remove_prefix(TakeText(bytes, news));
        break;
      case Place::kWords:
        bytes.remove_prefix(TakeWords(bytes));
        break;
      case Place::kLineStart:
      case Place::kFragmentStart: {
        // At most as much as any beginning needs, so that what is held stays small.
        const size_t more = std::min<size_t>(bytes.size(), 64 - std::min<size_t>(held_.size(), 63));
        const size_t newline = bytes.substr(0, more).find('\n');
        const size_t taken = newline == bytes.npos ? more : newline + 1;
        held_.append(bytes.substr(0, taken));
        bytes.remove_prefix(taken);
        if (!Decide(/*is_end=*/false, news)) continue;
        break;
      }
    }
  }
}

void LogLines::End(std::string* news) {
  if (held_.empty()) return;
  int64_t time = 0;
  bool may_become = false;
  ReadStamp(held_, &time, &may_become);
  // A time whose end was cut off comes again when its line is asked for again.
  if (may_become && place_ == Place::kLineStart) return;
  Decide(/*is_end=*/true, news);
}

bool LogLines::Decide(bool is_end, std::string* news) {
  int64_t time = 0;
  bool may_become = false;
  const size_t stamp = ReadStamp(held_, &time, &may_become);
  if (stamp == 0 && may_become && !is_end) return false;
  std::string held;
  if (stamp > 0) {
    held = held_.substr(stamp);
    held_.clear();
    // The words before it are the end of an older line, and no words of the node: those come last.
    words_.clear();
    Begin(time);
    place_ = Place::kText;
    Take(held, news);
    return true;
  }
  bool are_words = !is_split_;
  if (is_split_ && place_ == Place::kLineStart) {
    // A node's words have no newline and end the answer: a program's own that have lost their time
    // stay output.
    const bool may_be =
        held_.back() != '\n' && held_.size() < kMaxWordsBytes && MayBeWords(held_, &are_words);
    if (may_be && !is_end) return false;
  }
  if (place_ == Place::kFragmentStart) are_words = false;
  held.swap(held_);
  if (!are_words && !has_begun_) Begin(LogPosition::kNoTime);
  place_ = are_words ? Place::kWords : Place::kText;
  Take(held, news);
  return true;
}

size_t LogLines::TakeText(std::string_view bytes, std::string* news) {
  size_t size = bytes.size();
  if (is_split_) size = std::min<size_t>(size, kFragmentBytes - fragment_bytes_ % kFragmentBytes);
  const void* newline = std::memchr(bytes.data(), '\n', size);
  if (newline != nullptr)
    size = static_cast<size_t>(static_cast<const char*>(newline) - bytes.data()) + 1;
  Emit(bytes.substr(0, size), news);
  fragment_bytes_ += size;
  if (newline != nullptr) {
    place_ = Place::kLineStart;
  } else if (is_split_ && fragment_bytes_ % kFragmentBytes == 0) {
    place_ = Place::kFragmentStart;
  }
  return size;
}

size_t LogLines::TakeWords(std::string_view bytes) {
  const size_t newline = bytes.find('\n');
  const size_t size = newline == bytes.npos ? bytes.size() : newline + 1;
  words_.append(bytes.substr(0, std::min(size, kMaxWordsBytes - words_.size())));
  if (newline != bytes.npos) place_ = Place::kLineStart;
  return size;
}

uint64_t LogLines::CountOf(int64_t time) {
  for (Times& times : recent_) {
    if (times.time == time) return ++times.count;
  }
  recent_[next_recent_++ % recent_.size()] = {.time = time, .count = 1};
  return 1;
}

void LogLines::Begin(int64_t time) {
  count_ = CountOf(time);
  has_begun_ = true;
  time_ = time;
  bytes_ = 0;
  fragment_bytes_ = 0;
  is_skipped_ = false;
  to_skip_ = 0;
  if (!is_searching_) return;
  if (time == known_.time && count_ == known_.count) {
    is_searching_ = false;
    to_skip_ = known_.bytes;
  } else if (time > known_.latest) {
    // It came after all that is known, and that was not before it.
    is_searching_ = false;
    has_gap_ = true;
  } else {
    is_skipped_ = true;
  }
}

void LogLines::Emit(std::string_view bytes, std::string* news) {
  bytes_ += bytes.size();
  if (is_skipped_) return;
  const size_t known = std::min<uint64_t>(to_skip_, bytes.size());
  to_skip_ -= known;
  bytes.remove_prefix(known);
  if (bytes.empty()) return;
  news->append(bytes);
  has_news_ = true;
  position_ = {
      .time = time_, .latest = std::max(position_.latest, time_), .count = count_, .bytes = bytes_};
}

}  // namespace muster::kubernetes
