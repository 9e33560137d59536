#include "agents/core/clean_text.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::agents {
namespace {

constexpr char kForeign[] = "/home/caf\xe9";  // Latin-1, which no protobuf string can carry

TEST(CleanTextTest, PathsOfResultsAreCleanAndBounded) {
  agent::v1::RunEvent event;
  event.set_results_directory(kForeign);
  CleanTexts(&event);
  EXPECT_EQ(event.results_directory(), "/home/caf?");
  event.set_results_directory(std::string(10'000, 'x'));
  CleanTexts(&event);
  EXPECT_EQ(event.results_directory().size(), kMaxPathBytes);

  v1::Inventory inventory;
  CleanTexts(&inventory);
  EXPECT_FALSE(inventory.has_admission());
  inventory.mutable_admission()->set_results_root(kForeign);
  CleanTexts(&inventory);
  EXPECT_EQ(inventory.admission().results_root(), "/home/caf?");
}

}  // namespace
}  // namespace muster::agents
