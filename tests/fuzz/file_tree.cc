// Tests trees of files and the names in them: an entry that is taken never leads out of its
// directory.
#include "contract/file_tree.h"

#include <string>

#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using muster::fuzz::Require;
  const std::string_view text = muster::fuzz::TextOf(data, size);
  if (muster::contract::WhatIsWrongWithTreePath(text).empty()) {
    const std::string path = "/" + std::string(text) + "/";
    Require(!text.empty() && text.front() != '/', "a path is relative");
    Require(path.find("/../") == path.npos, "a path does not climb");
    Require(text.find('\0') == text.npos, "a path has no NUL");
  }
  const auto tree = muster::contract::ParseFileTree(text);
  if (!tree.ok()) return 0;
  static_cast<void>(muster::contract::ArchiveBytes(*tree));
  for (const auto& entry : tree->entries()) {
    Require(muster::contract::WhatIsWrongWithTreePath(entry.path()).empty(),
            "the paths of a tree that is taken are good");
  }
  return 0;
}
