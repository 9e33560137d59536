// Files in a directory of this machine: what keeps them from being laid out.
#include "agents/files/lay_out.h"

#include "agents/files/disk_room.h"
#include "tests/unit/agent_files/files_fixture.h"

namespace muster::uploads {
namespace {

using ::testing::HasSubstr;

class LayOutTest : public FilesTest {
 protected:
  LocalFiles Held() {
    std::vector<v1::FileTreeEntry> entries;
    std::vector<Wanted> wanted;
    for (const char* content : {"a", "b", "c"}) {
      source_.Add(content);
      entries.push_back(File(content, content));
      wanted.push_back(Want(content));
    }
    return {.tree = Tree(entries), .hold = *cache_->Fetch(wanted, absl::InfiniteDuration())};
  }
  const std::string work_ = dir_ / "work";
};

TEST_F(LayOutTest, EndsInTheMiddleOnceNobodyWantsItAndLeavesNothing) {
  int asked = 0;
  const absl::Status status = LayOut(Held(), cache_.get(), work_, [&] { return ++asked > 3; });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_FALSE(std::filesystem::exists(work_));
}

TEST_F(LayOutTest, LeavesFreeWhatIsToBeFree) {
  const LocalFiles files = Held();
  const uint64_t bytes = Occupied(files.tree);
  EXPECT_EQ(bytes, 4u * 4096);
  options_.keep_free_bytes = std::filesystem::space(dir_.path()).capacity;
  absl::StatusOr<std::unique_ptr<FileCache>> careful =
      FileCache::Open(dir_ / "other", options_, &source_);
  ASSERT_TRUE(careful.ok());
  const absl::Status status = LayOut(files, careful->get(), work_, kStillWanted);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("No space left on device"));
  EXPECT_FALSE(std::filesystem::exists(work_));
  EXPECT_FALSE((*careful)->MayHaveRoom(bytes, dir_.path()));
  EXPECT_TRUE(cache_->MayHaveRoom(bytes, dir_.path()));
}

}  // namespace
}  // namespace muster::uploads
