#include "agents/kubernetes/objects/kept_objects.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

Json Made(const std::string& uid, const std::string& name) {
  return {{"metadata", {{"uid", uid}, {"name", name}}}};
}

TEST(KubernetesKeptObjectsTest, EachThatComesChangesOrGoesIsMovedOnceHoweverItIsTold) {
  int tellings = 0;
  std::vector<std::string> moves;
  KeptObjects<std::string> kept(
      [](const Json& object) -> std::optional<std::string> {
        const std::string name = TextAt(object, "metadata/name");
        return name.empty() ? std::nullopt : std::optional(name);
      },
      {.on_moves = [&](const auto& told) {
        ++tellings;
        for (const auto& [before, now] : told)
          moves.push_back((before == nullptr ? "" : *before) + ">" + (now == nullptr ? "" : *now));
      }});
  const auto moved = [&] { return std::exchange(moves, {}); };
  kept.OnAll({Made("1", "a"), Made("2", "b"), Made("3", "")});
  EXPECT_THAT(moved(), UnorderedElementsAre(">a", ">b"));
  EXPECT_EQ(tellings, 1) << "nobody sees a part of a list";
  kept.OnChange(Made("1", "c"));
  kept.OnChange(Made("4", "d"));
  EXPECT_THAT(moved(), ElementsAre("a>c", ">d"));
  kept.OnChange(Made("4", ""));
  kept.OnDelete(Made("4", "d"));
  kept.OnDelete(Made("2", "b"));
  EXPECT_THAT(moved(), ElementsAre("d>", "b>")) << "what does not count any more is gone once";
  kept.OnAll({Made("1", "e")});
  EXPECT_THAT(moved(), ElementsAre("c>", ">e"));
}

}  // namespace
}  // namespace muster::kubernetes
