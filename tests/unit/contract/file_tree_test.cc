#include "contract/file_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "contract/errors.h"

namespace muster::contract {
namespace {

const std::string kDigest(64, 'a');

v1::FileTreeEntry* Add(v1::FileTree* tree, const std::string& path, v1::FileKind kind) {
  v1::FileTreeEntry* entry = tree->add_entries();
  entry->set_path(path);
  entry->set_kind(kind);
  return entry;
}

void AddFile(v1::FileTree* tree, const std::string& path, uint64_t size = 1) {
  v1::FileTreeEntry* entry = Add(tree, path, v1::FILE_KIND_FILE);
  entry->set_sha256(kDigest);
  entry->set_size_bytes(size);
  tree->set_total_bytes(tree->total_bytes() + size);
}

void AddLink(v1::FileTree* tree, const std::string& path, const std::string& target) {
  Add(tree, path, v1::FILE_KIND_SYMLINK)->set_link_target(target);
}

struct HostileTree {
  std::string name;
  std::function<void(v1::FileTree*)> make;
  std::string words;
};

// One entry alone is hostile.
std::vector<HostileTree> HostileEntries() {
  const auto file = [](const std::string& path) {
    return [path](v1::FileTree* tree) { AddFile(tree, path); };
  };
  const auto link = [](const std::string& path, const std::string& target) {
    return [=](v1::FileTree* tree) { AddLink(tree, path, target); };
  };
  return {
      {"absolute", file("/etc/passwd"), "is absolute"},
      {"above", file("../x"), "has the part"},
      {"above inside", file("a/../../x"), "has the part"},
      {"dot", file("./x"), "has the part"},
      {"empty path", file(""), "is empty"},
      {"empty part", file("a//b"), "empty part"},
      {"ends with a slash", file("a/"), "ends with"},
      {"NUL", file(std::string("a\0b", 3)), "NUL"},
      {"long name", file(std::string(256, 'n')), "255 bytes"},
      {"long path", file(std::string(1025, 'n')), "1024 bytes"},
      {"absolute link", link("l", "/etc"), "absolute target"},
      {"link above", link("a/l", "../../x"), "out of the tree"},
      {"link above by the middle", link("l", "a/../../x"), "out of the tree"},
      {"empty link", link("l", ""), "leads nowhere"},
      {"NUL in a link", link("l", std::string("a\0", 2)), "NUL"},
      {"long link", link("l", std::string(1025, 'x')), "1024 bytes"},
  };
}

// Entries do not go together, or have what their kind has not.
std::vector<HostileTree> HostileTogether() {
  return {
      {"two links that leave together",
       [](v1::FileTree* tree) {
         AddLink(tree, "a/l", "..");
         AddLink(tree, "z", "a/l/../x");
       },
       "through another link"},
      {"a link with a file's mode",
       [](v1::FileTree* tree) {
         AddLink(tree, "l", "x");
         tree->mutable_entries(0)->set_owner_only(true);
       },
       "what only a file has"},
      {"twice",
       [](v1::FileTree* tree) {
         AddFile(tree, "a");
         AddFile(tree, "a");
       },
       "there twice"},
      {"unsorted",
       [](v1::FileTree* tree) {
         AddFile(tree, "b");
         AddFile(tree, "a");
       },
       "out of order"},
      {"below a file",
       [](v1::FileTree* tree) {
         AddFile(tree, "a");
         AddFile(tree, "a.b");
         AddFile(tree, "a/b");
       },
       "below a file"},
      {"below a link",
       [](v1::FileTree* tree) {
         AddLink(tree, "a", "b");
         AddFile(tree, "a/c");
       },
       "below a file or a link"},
      {"wrong sum",
       [](v1::FileTree* tree) {
         AddFile(tree, "a");
         tree->set_total_bytes(7);
       },
       "bytes together"},
      {"overflowing sum",
       [](v1::FileTree* tree) {
         AddFile(tree, "a", ~uint64_t{0});
         AddFile(tree, "b", 2);
       },
       "larger than any file"},
      {"no kind", [](v1::FileTree* tree) { Add(tree, "a", v1::FILE_KIND_UNSPECIFIED); },
       "neither a file"},
      {"no digest", [](v1::FileTree* tree) { Add(tree, "a", v1::FILE_KIND_FILE); }, "SHA-256"},
      {"digest in capitals",
       [](v1::FileTree* tree) {
         Add(tree, "a", v1::FILE_KIND_FILE)->set_sha256(std::string(64, 'A'));
       },
       "SHA-256"},
      {"directory with a size",
       [](v1::FileTree* tree) { Add(tree, "a", v1::FILE_KIND_DIRECTORY)->set_size_bytes(1); },
       "only a file has"},
      {"file with a target",
       [](v1::FileTree* tree) {
         AddFile(tree, "a");
         tree->mutable_entries(0)->set_link_target("b");
       },
       "is no link"},
      {"too many",
       [](v1::FileTree* tree) {
         for (size_t i = 0; i <= kMaxTreeEntries; ++i) tree->add_entries();
       },
       ".musterignore"},
  };
}

TEST(FileTreeTest, AnOrdinaryTreeIsTaken) {
  v1::FileTree tree;
  Add(&tree, "a", v1::FILE_KIND_DIRECTORY);
  AddFile(&tree, "a/..b", 5);
  tree.mutable_entries(1)->set_owner_only(true);
  AddLink(&tree, "a/c", "../d/e");
  AddFile(&tree, "a/d/\xff", 3);
  Add(&tree, "empty", v1::FILE_KIND_DIRECTORY);
  AddLink(&tree, "z", "a/./d//");
  EXPECT_TRUE(CheckFileTree(tree).ok()) << CheckFileTree(tree);
  EXPECT_TRUE(ParseFileTree(tree.SerializeAsString()).ok());
}

TEST(FileTreeTest, AHostileTreeIsRefusedInWords) {
  std::vector<HostileTree> cases = HostileEntries();
  std::ranges::move(HostileTogether(), std::back_inserter(cases));
  for (const HostileTree& hostile : cases) {
    v1::FileTree tree;
    hostile.make(&tree);
    const absl::Status status = CheckFileTree(tree);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << hostile.name;
    EXPECT_NE(status.message().find(hostile.words), std::string::npos)
        << hostile.name << ": " << status.message();
    ASSERT_TRUE(GetErrorInfo(status).has_value()) << hostile.name;
    EXPECT_EQ(GetErrorInfo(status)->reason(), "HOSTILE_TREE");
  }
}

TEST(FileTreeTest, BytesThatAreNoTreeAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(ParseFileTree("\x0a\xff").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseFileTree(std::string(kMaxTreeBytes + 1, 'x')).status()));
  EXPECT_TRUE(ParseFileTree("").ok());
}

}  // namespace
}  // namespace muster::contract
