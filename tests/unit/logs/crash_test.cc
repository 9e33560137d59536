// Tests the archive's files after the process died, and after the disk lost bytes that were written
// and not yet synced.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "archive_fixture.h"
#include "broker/logs/block_sums.h"

namespace muster::logs {
namespace {

const LogId kOut{.job = 42, .run = 1, .rank = 0, .stream = v1::LOG_STREAM_STDOUT};
constexpr size_t kLogBytes = 3 * kBlockBytes + 700;

// Every byte differs from those beside it, and none is a zero.
std::string SomeText(size_t bytes) {
  std::string text;
  for (size_t i = 0; text.size() < bytes; ++i) text += std::to_string(i) + "\n";
  text.resize(bytes);
  return text;
}

class CrashTest : public ArchiveTest {
 protected:
  // Appends in pieces that fit no block.
  void AppendAll(const std::string& text, size_t piece = 600) {
    for (size_t at = 0; at < text.size(); at += piece) Append(kOut, at, text.substr(at, piece));
  }

  // Sends what is missing as an agent does, and sees the whole log.
  void ExpectGoesOn(const std::string& text) {
    const uint64_t next = Append(kOut, text.size(), "").next_offset;
    ASSERT_LE(next, text.size());
    EXPECT_TRUE(Append(kOut, next, text.substr(next), true).complete);
    EXPECT_TRUE(Read(kOut).data == text);
    EXPECT_EQ(Read(kOut).end, v1::LOG_END_COMPLETE);
  }

  const std::filesystem::path job_ = directory_ / "logs/0/42";
  const std::filesystem::path log_ = job_ / "1-0-1.open";
  const std::filesystem::path sums_ = job_ / "1-0-1.sums";
};

void Overwrite(const std::filesystem::path& path, size_t at, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file << bytes;
}

char ByteAt(const std::filesystem::path& path, size_t at) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  return static_cast<char>(file.get());
}

// The damage that a power cut does to a file from a place on.
enum class Damage { kCut, kZeros, kOneByte };

void Harm(const std::filesystem::path& path, size_t at, Damage damage) {
  const size_t size = std::filesystem::file_size(path);
  switch (damage) {
    case Damage::kCut:
      return std::filesystem::resize_file(path, at);
    case Damage::kZeros:
      return Overwrite(path, at, std::string(size - at, '\0'));
    case Damage::kOneByte:
      return Overwrite(path, at, std::string(1, static_cast<char>(ByteAt(path, at) ^ 0x10)));
  }
}

// Returns all around each boundary of blocks, and here and there between them.
std::vector<size_t> Places(size_t size, size_t block) {
  std::set<size_t> places;
  for (size_t at = 0; at < size; at += 211) places.insert(at);
  for (size_t at = 0; at <= size; at += block) {
    for (const size_t place : {at, at + 1, at + block - 1}) {
      if (place < size) places.insert(place);
    }
  }
  places.insert(size - 1);
  return {places.begin(), places.end()};
}

TEST_F(CrashTest, KeepsEveryByteWhenOnlyTheProcessIsKilled) {
  const std::string text = SomeText(kLogBytes);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Open();
    AppendAll(text);
    raise(SIGKILL);
  }
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  ASSERT_TRUE(WIFSIGNALED(how));
  Open();
  EXPECT_EQ(Append(kOut, 0, "").next_offset, text.size());
  EXPECT_TRUE(Read(kOut).data == text);
  EXPECT_EQ(Read(kOut).end, v1::LOG_END_MORE_LATER) << "open: nobody has said that this is all";
  ExpectGoesOn(text);
}

TEST_F(CrashTest, KeepsNoByteThatTheDiskLostAndAllBlocksBeforeIt) {
  const std::string text = SomeText(kLogBytes);
  for (const size_t place : Places(kLogBytes, kBlockBytes)) {
    for (const Damage damage : {Damage::kCut, Damage::kZeros, Damage::kOneByte}) {
      SCOPED_TRACE(testing::Message() << "place " << place << ", kind " << int(damage));
      archive_.reset();
      std::filesystem::remove_all(directory_ / "logs");
      Open();
      AppendAll(text);
      archive_.reset();
      Harm(log_, place, damage);
      Open();
      EXPECT_TRUE(Read(kOut).data == text.substr(0, place / kBlockBytes * kBlockBytes));
      ExpectGoesOn(text);
      if (HasFailure()) return;
    }
  }
}

TEST_F(CrashTest, TakesNoByteWithoutItsChecksum) {
  const std::string text = SomeText(kLogBytes);
  for (const size_t place : Places(4 * sizeof(BlockSum), sizeof(BlockSum))) {
    for (const Damage damage : {Damage::kCut, Damage::kZeros, Damage::kOneByte}) {
      SCOPED_TRACE(testing::Message() << "place " << place << ", kind " << int(damage));
      archive_.reset();
      std::filesystem::remove_all(directory_ / "logs");
      Open();
      AppendAll(text);
      archive_.reset();
      Harm(sums_, place, damage);
      Open();
      const std::string kept = Read(kOut).data;
      EXPECT_TRUE(kept == text.substr(0, kept.size()));
      EXPECT_GE(kept.size(), place / sizeof(BlockSum) * kBlockBytes);
      ExpectGoesOn(text);
      if (HasFailure()) return;
    }
  }
}

TEST_F(CrashTest, KeepsWhatIsSummedWhenTheChecksumsAreOlderThanTheBytes) {
  Open();
  Append(kOut, 0, "abc");
  std::filesystem::copy(sums_, directory_ / "older");
  Append(kOut, 3, "def");
  archive_.reset();
  std::filesystem::copy(directory_ / "older", sums_,
                        std::filesystem::copy_options::overwrite_existing);
  Open();
  EXPECT_EQ(Read(kOut).data, "abc");
  ExpectGoesOn("abcdefghi");
}

TEST_F(CrashTest, BeginsALogAgainWhoseChecksumsAreLost) {
  Open();
  Append(kOut, 0, "abcdef");
  archive_.reset();
  std::filesystem::remove(sums_);
  Open();
  EXPECT_EQ(Read(kOut).data, "");
  ExpectGoesOn("abcdef");
}

TEST_F(CrashTest, SurvivesACrashInTheMiddleOfGoingOnAfterACrash) {
  const std::string text = SomeText(kLogBytes);
  Open();
  AppendAll(text);
  for (size_t lost = 2 * kBlockBytes; lost > 0; lost -= kBlockBytes / 2) {
    archive_.reset();
    Harm(log_, lost, Damage::kZeros);
    Open();
    const uint64_t next = Append(kOut, 0, "").next_offset;
    EXPECT_EQ(next, lost / kBlockBytes * kBlockBytes);
    Append(kOut, next, text.substr(next, kBlockBytes + 10));
  }
  archive_.reset();
  Open();
  ExpectGoesOn(text);
}

TEST_F(CrashTest, GivesAReaderThatWasAheadOnlyWhatFollowsWhatItHas) {
  const std::string text = SomeText(kLogBytes);
  Open();
  AppendAll(text.substr(0, 10'000));
  std::string seen = Read(kOut).data;
  ASSERT_EQ(seen.size(), 10'000u);
  archive_.reset();
  Harm(log_, 5'000, Damage::kZeros);
  Open();
  auto follow = archive_->StartFollow(kOut, [&] { seen += Read(kOut, seen.size()).data; });
  EXPECT_EQ(Read(kOut, seen.size()).data, "");
  EXPECT_EQ(Read(kOut, seen.size()).end, v1::LOG_END_MORE_LATER);
  const uint64_t next = Append(kOut, 10'000, text.substr(10'000, 600)).next_offset;
  EXPECT_EQ(next, kBlockBytes) << "a gap: the pusher goes back";
  for (size_t at = next; at < text.size(); at += 600) Append(kOut, at, text.substr(at, 600));
  EXPECT_TRUE(seen == text);
}

TEST_F(CrashTest, CountsWhatItKeepsWhetherItLooksBeforeOrAfterTheSurvey) {
  for (const bool survey_first : {true, false}) {
    SCOPED_TRACE(survey_first);
    archive_.reset();
    std::filesystem::remove_all(directory_ / "logs");
    Open();
    AppendAll(SomeText(kLogBytes));
    archive_.reset();
    Harm(log_, kBlockBytes + 5, Damage::kZeros);
    Open();
    if (survey_first) Expire();
    EXPECT_EQ(Read(kOut).data.size(), kBlockBytes);
    Expire();
    EXPECT_EQ(archive_->usage().bytes, kBlockBytes);
  }
}

TEST_F(CrashTest, LeavesOneFileOfALogThatHasEnded) {
  Open();
  AppendAll(SomeText(kLogBytes));
  EXPECT_TRUE(std::filesystem::exists(sums_));
  ExpectGoesOn(SomeText(kLogBytes));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(job_)) {
    names.push_back(entry.path().filename());
  }
  EXPECT_EQ(names, std::vector<std::string>{"1-0-1.done"});
}

}  // namespace
}  // namespace muster::logs
