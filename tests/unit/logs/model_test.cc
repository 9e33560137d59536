// Random operations on the archive, compared with a model that is a map of strings.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "archive_fixture.h"

namespace muster::logs {
namespace {

// The content of one log, and the rest that its pusher still has.
struct ModelLog {
  std::string source;  // everything that the run will print
  size_t kept = 0;
  bool ended = false;
};

class Model {
 public:
  Model(std::mt19937* random, uint64_t cap) : random_(*random), cap_(cap) {
    for (uint64_t job = 1; job <= 3; ++job) {
      for (const auto stream : {v1::LOG_STREAM_STDOUT, v1::LOG_STREAM_STDERR}) {
        ModelLog& log = logs_[{.job = job, .run = 1, .rank = 0, .stream = stream}];
        for (size_t left = Below(3000); left > 0; --left) {
          log.source += static_cast<char>('a' + Below(26));
        }
      }
    }
  }

  // One random append: in order, overlapping, beyond a gap, an end, or an end too early.
  void Append(Archive* archive) {
    auto& [id, log] = *std::next(logs_.begin(), Below(logs_.size()));
    const size_t offset =
        Below(3) == 0 ? Below(log.source.size() + 1) : std::min(log.kept, log.source.size());
    const size_t size = Below(log.source.size() - offset + 1);
    const bool end = offset + size == log.source.size();
    const auto result = archive->Append(id, offset, log.source.substr(offset, size), end);
    ASSERT_TRUE(result.ok()) << result.status();
    Apply(id, offset, size, end);
    EXPECT_EQ(result->complete, log.ended);
    EXPECT_TRUE(result->discarding || result->next_offset == log.kept);
  }

  void Check(const Archive& archive) {
    for (const auto& [id, log] : logs_) {
      const size_t offset = Below(log.source.size() + 10);
      const size_t max_bytes = 1 + Below(1000);
      const auto read = archive.Read(id, offset, max_bytes);
      ASSERT_TRUE(read.ok()) << read.status();
      const size_t begin = std::min(offset, log.kept);
      ASSERT_EQ(read->data, log.source.substr(begin, std::min(max_bytes, log.kept - begin)));
      const bool at_end = offset + read->data.size() >= log.kept;
      EXPECT_EQ(read->end == v1::LOG_END_UNSPECIFIED, !at_end);
      if (at_end && log.ended) {
        EXPECT_EQ(read->end,
                  log.kept == log.source.size() ? v1::LOG_END_COMPLETE : v1::LOG_END_TRUNCATED);
      }
    }
  }

 private:
  size_t Below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random_);
  }

  uint64_t Used(uint64_t job) const {
    uint64_t used = 0;
    for (const auto& [id, log] : logs_) used += id.job == job ? log.kept : 0;
    return used;
  }

  void Apply(const LogId& id, size_t offset, size_t size, bool end) {
    ModelLog& log = logs_[id];
    if (log.ended) return;
    if (offset <= log.kept && offset + size > log.kept) {
      log.kept += std::min<uint64_t>(offset + size - log.kept, cap_ - Used(id.job));
    }
    log.ended = end && (log.kept == offset + size || Used(id.job) >= cap_);
  }

  std::mt19937& random_;
  const uint64_t cap_;
  std::map<LogId, ModelLog> logs_;
};

TEST_F(ArchiveTest, BehavesLikeAMapOfStringsUnderRandomOperationsAndReopenings) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Options options{.max_job_bytes = seed % 2 == 0 ? uint64_t{1000} : uint64_t{1} << 30,
                          .max_open_files = 2,
                          .sync_after_bytes = 500};
    archive_.reset();
    std::filesystem::remove_all(directory_ / "logs");
    Open(options);
    Model model(&random, options.max_job_bytes);
    for (int step = 0; step < 200; ++step) {
      model.Append(archive_.get());
      if (step % 10 == 0) model.Check(*archive_);
      if (random() % 40 == 0) Open(options);
      if (HasFatalFailure()) return;
    }
    model.Check(*archive_);
  }
}

}  // namespace
}  // namespace muster::logs
